package builtin

import (
	"cmp"
	"log/slog"

	"github.com/hookfabric/hookfabric/workers"
)

// Catalog returns every built-in hook by its name in hooks.yaml. The hook "log" writes to
// logger; nil is slog's default.
func Catalog(logger *slog.Logger) map[string]workers.Factory {
	logger = cmp.Or(logger, slog.Default())
	catalog := map[string]workers.Factory{
		"allow":                       newAllow,
		"append_context":              newAppendContext,
		"audit_log":                   newAuditLog,
		"debug_delay":                 newDebugDelay,
		"deny":                        newDeny,
		"extract_reminders":           newExtractReminders,
		"high_priority_task_reminder": newReminder,
		"inject_text":                 newInjectText,
		"log":                         newLog(logger),
		"path_permission":             newPathPermission,
		"require_text":                newRequireText,
	}
	for name := range stages() {
		catalog[name] = newStage
	}
	return catalog
}
