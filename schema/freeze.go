package schema

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// The verbs about freezes.
const (
	// VerbFreeze refuses all tool calls of some agents, or lists the freezes.
	VerbFreeze = "freeze"
	// VerbThaw ends a freeze.
	VerbThaw = "thaw"
)

// AllAgents is the pattern that freezes every agent.
const AllAgents = "*"

// The limits of freezes. Every shim stores all freezes, and every broker checks them at each
// call.
const (
	// MaxFreezes is how many freezes may be active. MaxFrozen limits their JSON, in bytes.
	MaxFreezes = 256
	MaxFrozen  = 32 << 10
	// MaxFreezeReason and MaxFreezeBy limit the texts of one freeze, in bytes.
	MaxFreezeReason = 512
	MaxFreezeBy     = 128
)

// A Freeze refuses every tool call of some agents until a thaw. Terminal tools, which only end
// a round, still pass. Brokers check freezes before they ask any hook.
type Freeze struct {
	// Agents is the pattern of the frozen agents, as in the configuration; [AllAgents] freezes
	// all.
	Agents string `json:"agents"`
	// Reason says why, By says who froze the agents. Both are for people.
	Reason string `json:"reason,omitzero"`
	By     string `json:"by,omitzero"`
	// Since is the time of the freeze, by the clock of the broker that accepted it.
	Since time.Time `json:"since"`
}

// A FreezeRequest freezes agents or thaws them. Without Agents, a freeze request changes
// nothing and lists the freezes.
type FreezeRequest struct {
	// Agents is the pattern. A thaw ends the freeze of exactly this pattern.
	Agents string `json:"agents,omitzero"`
	// Reason says why, By says who.
	Reason string `json:"reason,omitzero"`
	By     string `json:"by,omitzero"`
	// Within is how long to wait until every broker applies the change; absent: 20 s.
	Within Duration `json:"within,omitzero"`
	// Version is the version of the freezes that the client knows. If the freezes changed
	// since, the broker changes nothing. A request that a stalled broker handles late therefore
	// cannot undo a newer change. Absent: the request always applies.
	Version *uint64 `json:"version,omitzero"`
}

// A FreezeAnswer is the result of a [FreezeRequest].
type FreezeAnswer struct {
	// Changed reports whether the request changed the freezes.
	Changed bool `json:"changed,omitzero"`
	// Freeze is the freeze that started or ended; absent: the request only listed freezes.
	Freeze *Freeze `json:"freeze,omitzero"`
	// Frozen lists all active freezes. Version counts their changes.
	Frozen  []Freeze `json:"frozen"`
	Version uint64   `json:"version"`
	// Confirmed lists the brokers that apply the change. Missing lists the live brokers that
	// did not confirm it in time.
	Confirmed []string `json:"confirmed,omitzero"`
	Missing   []string `json:"missing,omitzero"`
	// Took is the time from the request's arrival to the last confirmation.
	Took Duration `json:"took,omitzero"`
	// Trouble says why the broker does not know which brokers live; absent: it knows.
	Trouble string `json:"trouble,omitzero"`
}

// A FreezeChange is the feed's record of a freeze or a thaw.
type FreezeChange struct {
	// Action is [VerbFreeze] or [VerbThaw].
	Action string `json:"action"`
	Agents string `json:"agents"`
	Reason string `json:"reason,omitzero"`
	By     string `json:"by,omitzero"`
	// Since is the start of the freeze that a thaw ended; absent for a freeze.
	Since time.Time `json:"since,omitzero"`
	// Version counts the changes of the freezes.
	Version uint64 `json:"version"`
}

// FreezeRecord returns the feed record of a freeze or thaw.
func FreezeRecord(c *FreezeChange) *Record { return &Record{Time: time.Now().UTC(), Freeze: c} }

// Whose returns words for the frozen agents, such as `agents "ci-*"`.
func (f *Freeze) Whose() string {
	if f.Agents == AllAgents {
		return "all agents"
	}
	return fmt.Sprintf("agents %q", f.Agents)
}

// Refusal returns the text that an agent reads when a freeze refuses its tool call.
func (f *Freeze) Refusal(tool string, terminal []string) string {
	call := "TOOL CALL"
	if tool != "" {
		call = fmt.Sprintf("TOOL `%s`", tool)
	}
	by := ""
	if f.By != "" {
		by = fmt.Sprintf(" by %s", f.By)
	}
	why := ""
	if f.Reason != "" {
		why = ": " + f.Reason
	}
	thaw := "broker thaw --all"
	if f.Agents != AllAgents {
		thaw = fmt.Sprintf("broker thaw --agent '%s'", f.Agents)
	}
	return fmt.Sprintf("%s REFUSED: the tool calls of %s were frozen%s at %s%s.\n"+
		"This ends when an operator thaws them (%s). Until then only %s can be used: do not try again, report what remains to be done and end your turn.",
		call, f.Whose(), by, f.Since.UTC().Format(time.RFC3339), why, thaw, strings.Join(terminal, ", "))
}

// TerminalTools returns the default terminal tools, which only end a round or report. They pass
// when the fabric refuses all other tools.
func TerminalTools() []string { return []string{"vote", "new_answer"} }

// IsTerminal reports whether tool is a terminal tool. It compares the whole name and its last
// part, because runtimes prefix a server's name.
func IsTerminal(tool string, terminal []string) bool {
	return slices.Contains(terminal, tool) || slices.Contains(terminal, ToolPart(tool))
}

// ToolPart returns a tool's own name, without the server's name that a runtime puts before it.
func ToolPart(tool string) string {
	if i := strings.LastIndex(tool, "__"); i >= 0 {
		tool = tool[i+2:]
	}
	return tool[strings.LastIndexAny(tool, "./:")+1:]
}
