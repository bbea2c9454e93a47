//! Membership and state of the cluster.

use dyad_core::ids::{ClusterId, Index, MemberId, Revision, Term};
use dyad_http::{Deadline, Request};
use serde::{Deserialize, Serialize};

use super::json::{Empty, Header, HeaderOnly, Number};
use super::kv::Consistency;
use super::{Client, Effect, Error};

/// One member as the asked member knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Member {
    /// Its id.
    pub id: MemberId,
    /// Its name; empty as long as the member has not started.
    pub name: String,
    /// Where its peers reach it.
    pub peer_urls: Vec<String>,
    /// Where clients reach it; empty as long as the member has not started.
    pub client_urls: Vec<String>,
    /// Whether it only listens.
    pub learner: bool,
}

/// The membership as the asked member knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Members {
    /// The cluster.
    pub cluster: ClusterId,
    /// Who was asked.
    pub asked: MemberId,
    /// All members.
    pub members: Vec<Member>,
}

impl Members {
    /// The member with this id.
    pub fn get(&self, id: MemberId) -> Option<&Member> {
        self.members.iter().find(|member| member.id == id)
    }

    /// All voters.
    pub fn voters(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| !member.learner)
    }
}

/// What a member says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// The cluster.
    pub cluster: ClusterId,
    /// Who was asked.
    pub member: MemberId,
    /// Its version.
    pub version: String,
    /// Whom it takes for the leader.
    pub leader: Option<MemberId>,
    /// Its raft term.
    pub term: Term,
    /// How far it knows the log to be committed.
    pub raft_index: Index,
    /// How far it has applied the log.
    pub applied_index: Index,
    /// Its last change of the key space.
    pub revision: Revision,
    /// The size of its database file.
    pub db_size_bytes: u64,
    /// How much of that is used.
    pub db_size_in_use_bytes: u64,
    /// Whether it only listens.
    pub learner: bool,
    /// What it complains of.
    pub errors: Vec<String>,
}

/// What an alarm is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum AlarmKind {
    /// The database is full.
    NoSpace,
    /// The members' data differ.
    Corrupt,
    /// Another one, by etcd's name.
    Other(String),
}

/// An alarm that is raised.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Alarm {
    /// By which member.
    pub member: MemberId,
    /// What about.
    pub kind: AlarmKind,
}

/// What `/health` says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Health {
    /// Whether a linearizable read succeeded and no alarm is raised.
    pub healthy: bool,
    /// Why not; etcd 3.4 does not say.
    pub reason: String,
}

/// What `/version` says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Versions {
    /// The version of the asked member.
    pub server: String,
    /// The version that the whole cluster keeps to.
    pub cluster: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct MemberJson {
    #[serde(rename = "ID")]
    id: Number,
    name: String,
    #[serde(rename = "peerURLs")]
    peer_urls: Vec<String>,
    #[serde(rename = "clientURLs")]
    client_urls: Vec<String>,
    #[serde(rename = "isLearner")]
    is_learner: bool,
}

impl From<MemberJson> for Member {
    fn from(json: MemberJson) -> Self {
        Self {
            id: MemberId(json.id.0),
            name: json.name,
            peer_urls: json.peer_urls,
            client_urls: json.client_urls,
            learner: json.is_learner,
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct MembersJson {
    header: Header,
    member: Option<MemberJson>,
    members: Vec<MemberJson>,
}

impl MembersJson {
    fn split(self) -> (Option<Member>, Members) {
        let members = Members {
            cluster: ClusterId(self.header.cluster_id.0),
            asked: MemberId(self.header.member_id.0),
            members: self.members.into_iter().map(Member::from).collect(),
        };
        (self.member.map(Member::from), members)
    }
}

#[derive(Serialize)]
struct OneMember {
    #[serde(rename = "ID")]
    id: Number,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct StatusJson {
    header: Header,
    version: String,
    db_size: Number,
    db_size_in_use: Number,
    leader: Number,
    raft_index: Number,
    raft_term: Number,
    raft_applied_index: Number,
    errors: Vec<String>,
    is_learner: bool,
}

impl Client {
    /// The membership as this member knows it. It answers without a leader, and may be behind.
    pub fn members(&self, deadline: Deadline) -> Result<Members, Error> {
        let answer: MembersJson = self.call(
            "list the members",
            "/v3/cluster/member/list",
            &Empty {},
            Effect::Reads,
            deadline,
        )?;
        Ok(answer.split().1)
    }

    /// The membership after everything that was committed when the call began. Needs a leader.
    ///
    /// etcd 3.4 knows no such list, so a linearizable read goes before it: on one and the same member the
    /// list then holds at least what that read saw.
    pub fn members_linearizable(&self, deadline: Deadline) -> Result<Members, Error> {
        self.get(b"\0", Consistency::Linearizable, deadline)?;
        self.members(deadline)
    }

    /// Adds a learner at these peer URLs. Returns it with its new id.
    pub fn add_learner(&self, peer_urls: &[String], deadline: Deadline) -> Result<Member, Error> {
        self.add(peer_urls, true, deadline)
    }

    /// Adds a voter at these peer URLs at once: only where nothing can be lost by it.
    pub fn add_voter(&self, peer_urls: &[String], deadline: Deadline) -> Result<Member, Error> {
        self.add(peer_urls, false, deadline)
    }

    fn add(
        &self,
        peer_urls: &[String],
        learner: bool,
        deadline: Deadline,
    ) -> Result<Member, Error> {
        #[derive(Serialize)]
        struct Body<'a> {
            #[serde(rename = "peerURLs")]
            peer_urls: &'a [String],
            #[serde(rename = "isLearner")]
            is_learner: bool,
        }
        let body = Body { peer_urls, is_learner: learner };
        let step = "add a member";
        let answer: MembersJson =
            self.call(step, "/v3/cluster/member/add", &body, Effect::Changes, deadline)?;
        answer.split().0.ok_or_else(|| self.not_etcd(step, "it does not name the member".into()))
    }

    /// Makes a learner a voter.
    pub fn promote(&self, member: MemberId, deadline: Deadline) -> Result<Members, Error> {
        self.change_member("promote a member", "/v3/cluster/member/promote", member, deadline)
    }

    /// Removes a member for good.
    pub fn remove(&self, member: MemberId, deadline: Deadline) -> Result<Members, Error> {
        self.change_member("remove a member", "/v3/cluster/member/remove", member, deadline)
    }

    fn change_member(
        &self,
        step: &'static str,
        path: &str,
        member: MemberId,
        deadline: Deadline,
    ) -> Result<Members, Error> {
        let body = OneMember { id: Number(member.0) };
        let answer: MembersJson = self.call(step, path, &body, Effect::Changes, deadline)?;
        Ok(answer.split().1)
    }

    /// Gives a member other peer URLs. (On etcd 3.4 the list afterwards takes a learner for a voter.)
    pub fn update(
        &self,
        member: MemberId,
        peer_urls: &[String],
        deadline: Deadline,
    ) -> Result<Members, Error> {
        #[derive(Serialize)]
        struct Body<'a> {
            #[serde(rename = "ID")]
            id: Number,
            #[serde(rename = "peerURLs")]
            peer_urls: &'a [String],
        }
        let body = Body { id: Number(member.0), peer_urls };
        let answer: MembersJson = self.call(
            "update a member",
            "/v3/cluster/member/update",
            &body,
            Effect::Changes,
            deadline,
        )?;
        Ok(answer.split().1)
    }

    /// Moves leadership from this member, which must lead, to another.
    pub fn move_leader(&self, to: MemberId, deadline: Deadline) -> Result<(), Error> {
        #[derive(Serialize)]
        struct Body {
            #[serde(rename = "targetID")]
            target_id: Number,
        }
        let _: HeaderOnly = self.call(
            "move leadership",
            "/v3/maintenance/transfer-leadership",
            &Body { target_id: Number(to.0) },
            Effect::Changes,
            deadline,
        )?;
        Ok(())
    }

    /// What this member says of itself. It answers without a leader.
    pub fn status(&self, deadline: Deadline) -> Result<Status, Error> {
        let json: StatusJson = self.call(
            "ask for the status",
            "/v3/maintenance/status",
            &Empty {},
            Effect::Reads,
            deadline,
        )?;
        Ok(Status {
            cluster: ClusterId(json.header.cluster_id.0),
            member: MemberId(json.header.member_id.0),
            version: json.version,
            leader: (json.leader.0 != 0).then_some(MemberId(json.leader.0)),
            term: Term(json.raft_term.0),
            raft_index: Index(json.raft_index.0),
            applied_index: Index(json.raft_applied_index.0),
            revision: Revision(json.header.revision.0),
            db_size_bytes: json.db_size.0,
            db_size_in_use_bytes: json.db_size_in_use.0,
            learner: json.is_learner,
            errors: json.errors,
        })
    }

    /// The alarms that are raised in the cluster.
    pub fn alarms(&self, deadline: Deadline) -> Result<Vec<Alarm>, Error> {
        #[derive(Serialize)]
        struct Body {
            action: &'static str,
        }
        #[derive(Debug, Default, Deserialize)]
        #[serde(default)]
        struct AlarmJson {
            #[serde(rename = "memberID")]
            member_id: Number,
            alarm: String,
        }
        #[derive(Debug, Default, Deserialize)]
        #[serde(default)]
        struct Answer {
            alarms: Vec<AlarmJson>,
        }
        let answer: Answer = self.call(
            "list the alarms",
            "/v3/maintenance/alarm",
            &Body { action: "GET" },
            Effect::Reads,
            deadline,
        )?;
        let alarm = |json: AlarmJson| Alarm {
            member: MemberId(json.member_id.0),
            kind: match json.alarm.as_str() {
                "NOSPACE" => AlarmKind::NoSpace,
                "CORRUPT" => AlarmKind::Corrupt,
                _ => AlarmKind::Other(json.alarm),
            },
        };
        Ok(answer.alarms.into_iter().map(alarm).collect())
    }

    /// Whether this member calls itself healthy. It waits for a leader, so the deadline matters.
    pub fn health(&self, deadline: Deadline) -> Result<Health, Error> {
        #[derive(Deserialize)]
        struct Answer {
            health: String,
            #[serde(default)]
            reason: String,
        }
        let step = "ask for the health";
        // An unhealthy member answers 503 with the same body.
        let response = self.exchange(step, &Request::get("/health"), deadline)?;
        let answer: Answer = self.parse(step, &response.body)?;
        Ok(Health { healthy: answer.health == "true", reason: answer.reason })
    }

    /// The versions of this member and of the cluster.
    pub fn versions(&self, deadline: Deadline) -> Result<Versions, Error> {
        #[derive(Deserialize)]
        struct Answer {
            etcdserver: String,
            etcdcluster: String,
        }
        let step = "ask for the version";
        let response = self.exchange(step, &Request::get("/version"), deadline)?;
        let answer: Answer = self.parse(step, &response.body)?;
        Ok(Versions { server: answer.etcdserver, cluster: answer.etcdcluster })
    }
}
