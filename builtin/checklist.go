package builtin

import (
	"github.com/hookfabric/hookfabric/schema"
)

// checklistTool is the tool with which an agent submits its checklist.
const checklistTool = "submit_checklist"

// Observes reports whether the output of tool can change what the hook chooses.
func (m *midStream) Observes(tool string) bool {
	return m.Defer && m.BeforeChecklist && schema.ToolPart(tool) == checklistTool
}

// Observe records in p that a checklist was accepted for the agent's current answer, and
// reports whether that is new.
func (m *midStream) Observe(e *schema.Event, p *schema.Peers) bool {
	if e.HookType != schema.PostToolUse || !m.Observes(e.ToolName) || p.Checked == p.Answers+1 || !accepted(e) {
		return false
	}
	p.Checked = p.Answers + 1
	return true
}

// accepted reports whether a tool's output says that the checklist was accepted. The
// members accepted and status must not contradict each other.
func accepted(e *schema.Event) bool {
	return anyDocument(e.ToolOutput, func(doc map[string]any) bool {
		isTrue, present := doc["accepted"].(bool)
		status, _ := doc["status"].(string)
		return status == "accepted" && (isTrue || !present) || isTrue && status != "rejected"
	})
}
