package schema

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// The verbs about freezes.
const (
	// VerbFreeze refuses the tool calls of agents from now on, or lists whose are.
	VerbFreeze = "freeze"
	// VerbThaw ends that.
	VerbThaw = "thaw"
)

// AllAgents is the pattern of a freeze of everybody.
const AllAgents = "*"

// The bounds of freezes: shims keep all of them, and brokers ask them at every call.
const (
	// MaxFreezes is how many may stand, and MaxFrozen how long they all may be, as
	// JSON, in bytes.
	MaxFreezes = 256
	MaxFrozen  = 32 << 10
	// MaxFreezeReason and MaxFreezeBy are how long the words of one may be, in bytes.
	MaxFreezeReason = 512
	MaxFreezeBy     = 128
)

// A Freeze refuses every tool call of some agents, but those of tools that only end
// a round, until it is thawed. It comes before all hooks, and is none.
type Freeze struct {
	// Agents says whose: a pattern as in the configuration, [AllAgents] for everybody.
	Agents string `json:"agents"`
	// Reason and By are for people: why, and who said so.
	Reason string `json:"reason,omitzero"`
	By     string `json:"by,omitzero"`
	// Since is when, by the clock of the broker that took it.
	Since time.Time `json:"since"`
}

// A FreezeRequest freezes agents, or thaws them. Without Agents a freeze changes
// nothing: it is asked which there are.
type FreezeRequest struct {
	// Agents is the pattern. What is thawed is the freeze of exactly that pattern.
	Agents string `json:"agents,omitzero"`
	// Reason says why, By who.
	Reason string `json:"reason,omitzero"`
	By     string `json:"by,omitzero"`
	// Within is how long to wait at most until every broker goes by it; absent: 20 s.
	Within Duration `json:"within,omitzero"`
	// Version is that of what is frozen, as the asker knows it. Where something was frozen or
	// thawed since, nothing is changed: a request that comes late, because the broker that got it
	// stood still, undoes nothing that was done meanwhile. Absent: it counts whenever it comes.
	Version *uint64 `json:"version,omitzero"`
}

// A FreezeAnswer says what came of a [FreezeRequest].
type FreezeAnswer struct {
	// Changed: it was not so before.
	Changed bool `json:"changed,omitzero"`
	// Freeze is the one that stands now, or that has ended; absent: it was only asked.
	Freeze *Freeze `json:"freeze,omitzero"`
	// Frozen are all that stand, and Version counts how often that changed.
	Frozen  []Freeze `json:"frozen"`
	Version uint64   `json:"version"`
	// Confirmed are the brokers that go by it, and Missing those that live and did not
	// say so in time.
	Confirmed []string `json:"confirmed,omitzero"`
	Missing   []string `json:"missing,omitzero"`
	// Took is the time from the request's arrival until the last of them had said so.
	Took Duration `json:"took,omitzero"`
	// Trouble is why it is not known which brokers live; absent: it is.
	Trouble string `json:"trouble,omitzero"`
}

// A FreezeChange is what somebody did: a record on the feed.
type FreezeChange struct {
	// Action is [VerbFreeze] or [VerbThaw].
	Action string `json:"action"`
	Agents string `json:"agents"`
	Reason string `json:"reason,omitzero"`
	By     string `json:"by,omitzero"`
	// Since is since when the calls were refused that are thawed; absent: it is a freeze.
	Since time.Time `json:"since,omitzero"`
	// Version counts how often something was frozen or thawed.
	Version uint64 `json:"version"`
}

// FreezeRecord is the record of such a change.
func FreezeRecord(c *FreezeChange) *Record { return &Record{Time: time.Now().UTC(), Freeze: c} }

// Whose says in words whose calls it refuses.
func (f *Freeze) Whose() string {
	if f.Agents == AllAgents {
		return "all agents"
	}
	return fmt.Sprintf("agents %q", f.Agents)
}

// Refusal is what an agent reads whose call of a tool is refused.
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
		"This ends when an operator thaws them (%s). Until then only %s can be used: do not try again, say what is left to do and end your turn.",
		call, f.Whose(), by, f.Since.UTC().Format(time.RFC3339), why, thaw, strings.Join(terminal, ", "))
}

// TerminalTools are the tools that only end a round or report, unless the
// configuration says otherwise: they pass when all others are refused.
func TerminalTools() []string { return []string{"vote", "new_answer"} }

// IsTerminal reports whether tool is one of the terminal ones: by its whole name, or
// by the last part of it, because runtimes put a server's name before it.
func IsTerminal(tool string, terminal []string) bool {
	return slices.Contains(terminal, tool) || slices.Contains(terminal, ToolPart(tool))
}

// ToolPart is a tool's own name, without the server that it belongs to, in
// whichever way runtimes put the two together.
func ToolPart(tool string) string {
	if i := strings.LastIndex(tool, "__"); i >= 0 {
		tool = tool[i+2:]
	}
	return tool[strings.LastIndexAny(tool, "./:")+1:]
}
