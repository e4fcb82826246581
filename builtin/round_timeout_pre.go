package builtin

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/hookfabric/hookfabric/schema"
)

// maxDenials is how many consecutive calls are refused before the run ends; from
// secondNotice on the refusal announces it.
const (
	maxDenials   = 10
	secondNotice = 3
)

// gateOptions are the options of "round_timeout_pre".
type gateOptions struct {
	// TerminalTools are the tools that always pass, by the last part of their names: vote
	// is also mcp__server__vote, server.vote, server/vote and server:vote. Absent: vote
	// and new_answer.
	TerminalTools []string `json:"terminal_tools"`
}

// roundTimeoutPre is the hook "round_timeout_pre": after a round's grace it refuses every
// tool that does not end the round.
type roundTimeoutPre struct{ terminal []string }

func newRoundTimeoutPre(h schema.Hook) (any, error) {
	o, err := options[gateOptions](h)
	switch {
	case err != nil:
		return nil, err
	case o.TerminalTools == nil:
		o.TerminalTools = schema.TerminalTools()
	case len(o.TerminalTools) == 0 || slices.Contains(o.TerminalTools, ""):
		return nil, fmt.Errorf("the option \"terminal_tools\" of %q names no tool; name the tools that end a round, or leave the option out for %s", h.Handler, toolList(nil))
	}
	return &roundTimeoutPre{o.TerminalTools}, nil
}

// Terminal returns the tools that are never refused, which the warning names.
func (g *roundTimeoutPre) Terminal() []string { return slices.Clone(g.terminal) }

// Passes reports whether tool ends the round and is never refused.
func (g *roundTimeoutPre) Passes(tool string) bool {
	return schema.IsTerminal(tool, g.terminal)
}

// Refuse returns the refusal of tool, with the allowed tools in its reason.
func (g *roundTimeoutPre) Refuse(tool string, r *schema.Round) schema.Result {
	head := fmt.Sprintf("TOOL `%s` REFUSED: the time of this round is over", tool)
	r = cmp.Or(r, &schema.Round{})
	if r.Denials > 0 {
		head += fmt.Sprintf(" (attempt %d)", r.Denials)
	}
	lines := []string{head + "."}
	if r.Warned {
		lines = append(lines, fmt.Sprintf("You were warned %s ago and had %s to finish.", secondsOf(r.Since, 0), secondsOf(r.Grace, 0)))
	}
	lines = append(lines, fmt.Sprintf("You can now use only %s. Submit what you have, and state in it what is unsolved.", toolList(g.terminal)))
	switch {
	case r.Terminate:
		lines = append(lines, fmt.Sprintf("The fabric denied %d calls in a row, so it ends the run. You can still use %s.", max(r.Denials, maxDenials), toolList(g.terminal)))
	case r.Denials >= secondNotice:
		lines = append(lines, fmt.Sprintf("The fabric denied %d calls in a row. After %d it ends the run.", r.Denials, maxDenials))
	}
	return schema.Denied(strings.Join(lines, "\n"))
}
