//! What an agent that asks for permission is told.

use agent_client_protocol::v1::schema::{
    PermissionOption, PermissionOptionKind, RequestPermissionOutcome, SelectedPermissionOutcome, ToolKind,
};

/// What an agent may do when it asks: nobody is there whom it could ask.
///
/// It decides what agents are *told*, and for agents that ask it is all there is between a script's prompt and this
/// machine. Agents that do not ask are not held back by it, and the kind of a tool is what the agent says it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Permissions {
    /// Nothing is allowed.
    #[default]
    Deny,
    /// Tools that say that they read, search or think are allowed, once each time.
    Read,
    /// Everything is allowed.
    Allow,
}

impl Permissions {
    /// The answer to one request, for a tool of this kind.
    pub(super) fn decide(self, kind: ToolKind, options: &[PermissionOption]) -> RequestPermissionOutcome {
        use PermissionOptionKind::{AllowAlways, AllowOnce, RejectAlways, RejectOnce};
        let reads = matches!(kind, ToolKind::Read | ToolKind::Search | ToolKind::Think);
        let wanted: &[PermissionOptionKind] = match self {
            Self::Allow => &[AllowOnce, AllowAlways],
            // What is allowed for ever may be more than reading.
            Self::Read if reads => &[AllowOnce, RejectOnce, RejectAlways],
            Self::Read | Self::Deny => &[RejectOnce, RejectAlways],
        };
        let chosen = wanted.iter().find_map(|kind| options.iter().find(|option| option.kind == *kind));
        match chosen {
            Some(option) => {
                RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(option.option_id.clone()))
            }
            None => RequestPermissionOutcome::Cancelled,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kind of the option that is chosen among those offered.
    fn chosen(
        permissions: Permissions,
        kind: ToolKind,
        offered: &[PermissionOptionKind],
    ) -> Option<PermissionOptionKind> {
        let option = |kind: &PermissionOptionKind| PermissionOption::new(format!("{kind:?}"), "name", *kind);
        let options: Vec<_> = offered.iter().map(option).collect();
        match permissions.decide(kind, &options) {
            RequestPermissionOutcome::Selected(selected) => {
                options.iter().find(|option| option.option_id == selected.option_id).map(|option| option.kind)
            }
            _ => None,
        }
    }

    #[test]
    fn each_policy_chooses_by_kind_and_never_more_than_it_says() {
        use PermissionOptionKind::{AllowAlways, AllowOnce, RejectAlways, RejectOnce};
        let all = [AllowAlways, AllowOnce, RejectAlways, RejectOnce];
        let allow = [AllowAlways, AllowOnce];
        for (permissions, kind, offered, expected) in [
            (Permissions::Deny, ToolKind::Read, &all[..], Some(RejectOnce)),
            (Permissions::Deny, ToolKind::Edit, &all[..3], Some(RejectAlways)),
            (Permissions::Deny, ToolKind::Edit, &allow, None),
            (Permissions::Read, ToolKind::Read, &all, Some(AllowOnce)),
            (Permissions::Read, ToolKind::Search, &all, Some(AllowOnce)),
            (Permissions::Read, ToolKind::Read, &[AllowAlways], None),
            (Permissions::Read, ToolKind::Execute, &all, Some(RejectOnce)),
            (Permissions::Read, ToolKind::Other, &all, Some(RejectOnce)),
            (Permissions::Allow, ToolKind::Execute, &all, Some(AllowOnce)),
            (Permissions::Allow, ToolKind::Execute, &[AllowAlways], Some(AllowAlways)),
            (Permissions::Allow, ToolKind::Execute, &[RejectOnce], None),
        ] {
            assert_eq!(chosen(permissions, kind, offered), expected, "{permissions:?} {kind:?} {offered:?}");
        }
    }
}
