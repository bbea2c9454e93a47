//! What a BMC has written down itself: power that came and went, fans, temperatures, who logged in.

use dyad_http::Deadline;
use serde_json::Value;

use crate::error::Error;
use crate::redfish::{Redfish, link};
use crate::system::{System, printable};

/// Bounds on what a BMC may list.
const SERVICES_MAX: usize = 8;
const PAGES_MAX: usize = 8;
const ENTRIES_MAX: usize = 500;

/// One line of a BMC's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogEntry {
    /// When, as the BMC writes it; its clock may be wrong.
    pub created: String,
    /// `OK`, `Warning`, `Critical`, if it says.
    pub severity: String,
    /// What happened.
    pub message: String,
    /// Which of its logs it stands in.
    pub log: String,
}

impl Redfish {
    /// The entries of all logs of a System and of what manages it, as many as there are within bounds. A log that
    /// cannot be read is an entry that says so: the others may tell enough.
    pub fn log_entries(&self, system: &System, deadline: Deadline) -> Result<Vec<LogEntry>, Error> {
        let body = self.get("read the System", &system.path, deadline)?;
        let mut services = self.log_services(&body, deadline)?;
        let managers = body["Links"]["ManagedBy"].as_array().into_iter().flatten();
        for manager in managers.filter_map(link).take(SERVICES_MAX) {
            let manager = self.get("read the Manager", &manager, deadline)?;
            services.extend(self.log_services(&manager, deadline)?);
        }
        let mut entries = Vec::new();
        for service in services.into_iter().take(SERVICES_MAX) {
            if let Err(error) = self.read_log(&service, deadline, &mut entries) {
                entries.push(LogEntry {
                    created: String::new(),
                    severity: String::new(),
                    message: format!("this log cannot be read: {error}"),
                    log: printable(&service),
                });
            }
        }
        Ok(entries)
    }

    /// The paths of the logs that a resource names; none is no error.
    fn log_services(&self, resource: &Value, deadline: Deadline) -> Result<Vec<String>, Error> {
        let Some(path) = link(&resource["LogServices"]) else { return Ok(Vec::new()) };
        let list = self.get("list the logs", &path, deadline)?;
        Ok(list["Members"].as_array().into_iter().flatten().filter_map(link).collect())
    }

    fn read_log(
        &self,
        service: &str,
        deadline: Deadline,
        entries: &mut Vec<LogEntry>,
    ) -> Result<(), Error> {
        let body = self.get("read a log", service, deadline)?;
        let name = printable(body["Id"].as_str().or(body["Name"].as_str()).unwrap_or(service));
        let mut next = link(&body["Entries"]);
        for _ in 0..PAGES_MAX {
            let Some(path) = next else { return Ok(()) };
            let page = self.get("read a log's entries", &path, deadline)?;
            for member in page["Members"].as_array().into_iter().flatten() {
                if entries.len() == ENTRIES_MAX {
                    return Ok(());
                }
                entries.extend(entry(member, &name));
            }
            next = page["Members@odata.nextLink"].as_str().map(str::to_owned);
        }
        Ok(())
    }
}

/// An entry that stands in the list itself; those that the list only points to are left: each would cost a request.
fn entry(member: &Value, log: &str) -> Option<LogEntry> {
    let text = |key: &str| printable(member[key].as_str().unwrap_or_default());
    member["Message"].as_str()?;
    Some(LogEntry {
        created: text("Created"),
        severity: text("Severity"),
        message: text("Message"),
        log: log.to_owned(),
    })
}
