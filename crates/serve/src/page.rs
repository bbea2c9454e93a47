//! The status page: the answer in large letters, the pair as a picture, then what it rests on.
//!
//! It loads nothing from anywhere and works without JavaScript, which only keeps it fresh.

use std::fmt::Write as _;

use dyad_core::state::{State, Urgency};
use dyad_status::Status;
use dyad_status::document::{FenceDevice, Incident};
use dyad_status::words::{bytes, duration, moment};

use crate::picture;
use crate::timeline::timeline;

const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1b2330;--paper:#f6f7f9;--card:#fff;--line:#d6dbe3;--soft:#5b6676;\
--fine:#0b7a4b;--care:#9a6200;--act:#b3261e}\
@media(prefers-color-scheme:dark){:root{--ink:#e7ebf2;--paper:#11151c;--card:#1a202a;--line:#323b49;\
--soft:#9aa6b8;--fine:#4cc38a;--care:#e3a63b;--act:#ff7b72}}\
*{box-sizing:border-box}body{margin:0;background:var(--paper);color:var(--ink);\
font:16px/1.5 system-ui,-apple-system,'Segoe UI',sans-serif}\
main{max-width:60rem;margin:0 auto;padding:1.5rem 1rem 3rem}\
.answer{border-left:.5rem solid var(--tone);background:var(--card);border-radius:.6rem;padding:1.1rem 1.3rem;\
box-shadow:0 1px 3px #0002}.answer h1{margin:0;font-size:clamp(1.6rem,6vw,2.6rem);letter-spacing:.02em;\
color:var(--tone)}.answer p{margin:.3rem 0 0;font-size:1.1rem}.since{color:var(--soft);font-size:.95rem!important}\
.fine{--tone:var(--fine)}.care{--tone:var(--care)}.act{--tone:var(--act)}\
code{background:var(--paper);border:1px solid var(--line);border-radius:.3rem;padding:.1rem .4rem;\
overflow-wrap:anywhere}section{background:var(--card);border-radius:.6rem;padding:.9rem 1.3rem;margin-top:1rem;\
box-shadow:0 1px 3px #0002;overflow-x:auto}h2{font-size:1rem;margin:0 0 .5rem;color:var(--soft)}\
table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.3rem .8rem .3rem 0;vertical-align:top;\
border-top:1px solid var(--line);font-size:.95rem}th{font-weight:600;border-top:0;color:var(--soft)}\
ul{margin:.2rem 0;padding-left:1.2rem}svg{width:100%;height:auto;max-height:20rem}\
svg text{font:14px system-ui,sans-serif;fill:var(--ink)}svg .name{font-weight:700;font-size:16px}\
svg rect{fill:none;stroke-width:2.5}svg line{stroke-width:2.5}.up rect,.up line{stroke:var(--fine)}\
.down rect,.down line{stroke:var(--act);stroke-dasharray:7 6}.unknown rect,.unknown line{stroke:var(--soft);\
stroke-dasharray:2 5}footer{color:var(--soft);font-size:.85rem;margin-top:1.2rem}\
@media(max-width:40rem){td,th{padding-right:.5rem;font-size:.85rem}section,.answer{padding:.8rem}}\
.bar{height:.6rem;background:var(--line);border-radius:.3rem;overflow:hidden}\
.bar i{display:block;height:100%;background:var(--care)}\
article+article{border-top:1px solid var(--line);margin-top:.8rem;padding-top:.6rem}h3{font-size:.95rem;margin:0}\
article p{margin:.1rem 0 .4rem;font-size:.95rem;color:var(--soft)}.story{margin:0}\
.story svg{max-width:40rem;display:block}.story line{stroke:var(--line);stroke-width:4}\
.story .open line{stroke-dasharray:3 5}.story circle{fill:var(--card);stroke:var(--soft);stroke-width:2}\
.story svg text{font-size:13px}.story ol{display:flex;flex-wrap:wrap;gap:.1rem 1.6rem;margin:.2rem 0;\
padding-left:1.2rem;font-size:.9rem}.story small{color:var(--soft);white-space:nowrap}";

/// Keeps the page fresh: whenever there is something new, it is fetched and put in place.
const SCRIPT: &str = "\
const live=document.getElementById('live');let quiet;\
const events=new EventSource('events');\
const renew=async()=>{const text=await(await fetch('./',{cache:'no-store'})).text();\
const fresh=new DOMParser().parseFromString(text,'text/html');\
document.getElementById('pair').replaceWith(fresh.getElementById('pair'));\
document.title=fresh.title;live.textContent='live'};\
events.addEventListener('status',()=>renew().catch(()=>{}));\
events.onerror=()=>{live.textContent='no connection to this node; what is shown is old'};";

/// The whole page.
pub fn page(status: &Status, incidents: &[Incident]) -> String {
    let tone = match status.state.urgency() {
        Urgency::Fine => "fine",
        Urgency::Care => "care",
        Urgency::Act => "act",
    };
    let mut html = String::with_capacity(16 << 10);
    let (word, pair) = (status.state.word(), escaped(&status.pair));
    let _ = write!(
        html,
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <noscript><meta http-equiv=\"refresh\" content=\"10\"></noscript>\
         <title>{word}: {pair}</title><style>{STYLE}</style></head><body><main>\
         <div id=\"pair\" class=\"{tone}\">"
    );
    add_answer(status, &mut html);
    let _ = write!(html, "<section><h2>The pair</h2>{}</section>", picture::picture(status));
    add_nodes(status, &mut html);
    add_incidents(incidents, &mut html);
    add_power_and_units(status, &mut html);
    let _ = write!(
        html,
        "<footer>{pair}, seen from {} at {} UTC in {} ms · <a href=\"status.json\">status.json</a> · \
         <a href=\"metrics\">metrics</a></footer></div>\
         <footer id=\"live\">without JavaScript this page renews itself every ten seconds</footer>\
         </main><script>{SCRIPT}</script></body></html>",
        escaped(&status.seen_by),
        moment(status.time_ms),
        status.took_ms
    );
    html
}

fn add_answer(status: &Status, html: &mut String) {
    let about = match (&status.on, status.state) {
        (Some(on), State::Maintenance) => format!(" of {}", escaped(on)),
        (Some(on), State::Alone | State::Stopped | State::FailingOver) => {
            format!(" on {}", escaped(on))
        }
        _ => String::new(),
    };
    let _ = write!(
        html,
        "<div class=\"answer\"><h1>{}{about}</h1><p>{}</p>",
        status.state.word(),
        escaped(&status.because)
    );
    if let Some(since_ms) = status.since_ms {
        let lasted = duration(status.time_ms.saturating_sub(since_ms));
        let _ = write!(html, "<p class=\"since\">for {lasted}, since {} UTC</p>", moment(since_ms));
    }
    if let Some(next) = &status.next {
        let _ = write!(html, "<p>next step: <code>{}</code></p>", escaped(next));
    }
    add_list("also", &status.risks, html);
    add_list("not known", &status.unknown, html);
    html.push_str("</div>");
}

fn add_list(title: &str, list: &[String], html: &mut String) {
    if list.is_empty() {
        return;
    }
    let items: String = list.iter().map(|item| format!("<li>{}</li>", escaped(item))).collect();
    let _ = write!(html, "<p>{title}:</p><ul>{items}</ul>");
}

fn add_nodes(status: &Status, html: &mut String) {
    html.push_str(
        "<section><h2>Data</h2><table><tr><th>node</th><th>etcd</th><th>data</th>\
         <th>database</th><th>behind</th></tr>",
    );
    for node in &status.nodes {
        let etcd = &node.etcd;
        let known = |text: Option<&str>| escaped(text.unwrap_or("not known"));
        let alone = match etcd.eligible {
            Some(true) => ", may go on alone",
            Some(false) | None => "",
        };
        let size = etcd.db_size_bytes.map_or_else(|| "not known".to_owned(), bytes);
        let behind = etcd.behind_entries.map_or_else(String::new, |count| count.to_string());
        let _ = write!(
            html,
            "<tr><td>{}</td><td>{}</td><td>{}{alone}</td><td>{size}</td><td>{behind}",
            escaped(&node.name),
            known(etcd.role.as_deref()),
            known(etcd.dataset.as_deref())
        );
        for alarm in &etcd.alarms {
            let _ = write!(html, " <strong>{}</strong>", escaped(alarm));
        }
        if let Some(percent) = etcd.caught_up_percent {
            let _ = write!(
                html,
                " {percent} % copied<div class=\"bar\"><i style=\"width:{percent}%\"></i></div>"
            );
        }
        html.push_str("</td></tr>");
    }
    html.push_str("</table></section>");
}

fn add_power_and_units(status: &Status, html: &mut String) {
    html.push_str("<section><h2>Power and units</h2><table>");
    let fencing = match status.fencing.enabled {
        Some(true) => "on",
        Some(false) => "OFF",
        None => "not known",
    };
    let last = status.fencing.last.as_ref().map_or_else(
        || "never used, as far as is known".to_owned(),
        |last| {
            let when = last.when();
            format!("{} of {}: {} ({when})", last.action, last.node, last.outcome)
        },
    );
    let _ = write!(
        html,
        "<tr><td>fencing</td><td>{fencing}</td></tr><tr><td>last used</td><td>{}</td></tr>",
        escaped(&last)
    );
    for device in &status.fencing.devices {
        add_device(device, html);
    }
    let _ = write!(
        html,
        "<tr><td>last drill</td><td>{}</td></tr><tr><td>detection</td><td>{}</td></tr>",
        escaped(&drill(status)),
        detection(status)
    );
    let word = |runs: Option<bool>| match runs {
        Some(true) => "runs",
        Some(false) => "DOES NOT RUN",
        None => "not known",
    };
    let name = |at: usize| status.nodes.get(at).map_or("", |node| node.name.as_str());
    for unit in &status.units {
        let _ = write!(
            html,
            "<tr><td>{}</td><td>{} on {}, {} on {}</td></tr>",
            escaped(&unit.name),
            word(unit.runs_here),
            escaped(name(0)),
            word(unit.runs_on_peer),
            escaped(name(1))
        );
    }
    html.push_str("</table></section>");
}

fn add_device(device: &FenceDevice, html: &mut String) {
    let since =
        device.test_since_ms.map_or_else(String::new, |ms| format!(" since {} UTC", moment(ms)));
    let every = duration(device.test_interval_ms);
    let result = match device.works {
        Some(true) => format!("passes every {every}{since}"),
        Some(false) => format!("FAILS{since}"),
        None => "not tested now".to_owned(),
    };
    let name = escaped(&device.node);
    let _ = write!(html, "<tr><td>test of {name}</td><td>{result}</td></tr>");
}

fn drill(status: &Status) -> String {
    let Some(drill) = &status.fencing.last_drill else {
        return format!("none on {} yet", status.seen_by);
    };
    let result = match (&drill.failure, drill.protected_after_ms) {
        (Some(why), _) => format!("FAILED: {why}"),
        (None, Some(ms)) => format!("passed, protected again after {}", duration(ms)),
        (None, None) => "passed".to_owned(),
    };
    format!("{} UTC, {}: {result}", moment(drill.time_ms), drill.node)
}

fn detection(status: &Status) -> String {
    status.detection.as_ref().map_or_else(
        || "not known".to_owned(),
        |seen| {
            let (silent, limit) = (seen.token_silence_ms, seen.token_timeout_ms);
            format!("token silent for {silent} ms of {limit} ms; lost so far: {}", seen.tokens_lost)
        },
    )
}

fn add_incidents(incidents: &[Incident], html: &mut String) {
    html.push_str("<section><h2>Incidents</h2>");
    if incidents.is_empty() {
        html.push_str("<p>none known</p></section>");
        return;
    }
    for incident in incidents {
        let mut lasted = duration(incident.duration_ms);
        if incident.end_ms.is_none() {
            lasted.push_str(" so far");
        }
        let _ = write!(
            html,
            "<article><h3>{} UTC, {lasted}</h3><p>{}</p>{}</article>",
            moment(incident.start_ms),
            escaped(&incident.what),
            timeline(incident)
        );
    }
    html.push_str("</section>");
}

/// Text that stays text.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
