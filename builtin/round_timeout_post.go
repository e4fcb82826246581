package builtin

import (
	"fmt"
	"strings"

	"github.com/hookfabric/hookfabric/schema"
)

// newRoundTimeoutPost makes the hook "round_timeout_post": it warns an agent once that its
// round is about to end. Its only option is at_end. The settings of a round are fixed when the
// round starts.
func newRoundTimeoutPost(h schema.Hook) (any, error) {
	return newDelivery(h, sourceDelivery{source: schema.SourceTimeout, lead: "TIME LIMIT", text: warningsOf})
}

// warningsOf puts one warning after the other, because each must be read.
func warningsOf(r *schema.Receiver, run []*schema.Item) string {
	var warnings []string
	for _, it := range run {
		switch {
		case it.TimeLimit == nil:
			warnings = append(warnings, framed("TIME LIMIT", plain(it)))
		case over(r, it):
			warnings = append(warnings, fmt.Sprintf("[Round %d reached its time limit and is over. You need not do anything.]", it.TimeLimit.Round))
		default:
			warnings = append(warnings, warning(it.TimeLimit))
		}
	}
	return strings.Join(warnings, "\n\n")
}

// over reports whether the warning is about a round before the agent's current one. The
// agent would apply it to the current round.
func over(r *schema.Receiver, it *schema.Item) bool {
	return r != nil && r.Round != nil && it.Number > 0 && it.Number < r.Round.Start
}

// warning renders the soft time-out.
func warning(l *schema.TimeLimit) string {
	goal := "your vote or your final answer"
	if l.Round == 0 {
		goal = "your initial answer"
	}
	title := "TIME LIMIT REACHED - SUBMIT " + strings.ToUpper(goal) + " NOW"
	if l.WrapUp {
		title = "PLEASE WRAP UP - AN OPERATOR ASKS FOR " + strings.ToUpper(goal)
	}
	tools := toolList(l.Terminal)
	text := fmt.Sprintf("\n%s\n%s\n\n", because(l), graceOf(l.Grace, tools)) +
		"What to do:\n" +
		"- Start nothing new. Finish only what " + goal + " needs.\n" +
		"- Submit " + goal + " with " + tools + ", in its current state.\n" +
		"- State in it what is unfinished or uncertain.\n"
	return framed(title, text)
}

// because says why the agent is warned.
func because(l *schema.TimeLimit) string {
	round := "this round (voting)"
	if l.Round == 0 {
		round = "the first round (initial answer)"
	}
	switch {
	case l.WrapUp:
		return fmt.Sprintf("An operator asked you to finish, %s into %s.", secondsOf(l.Elapsed, 0), round)
	case l.Limit == nil:
		return fmt.Sprintf("The time for %s is used up: it has taken %s.", round, secondsOf(l.Elapsed, 0))
	}
	return fmt.Sprintf("The time for %s is used up: %s of %s.", round, secondsOf(l.Elapsed, 0), secondsOf(*l.Limit, 0))
}

// graceOf says what happens next.
func graceOf(grace schema.Duration, tools string) string {
	if grace <= 0 {
		return "From now on you can use only " + tools + "."
	}
	return fmt.Sprintf("You have %s left. After that you can use only %s.", secondsOf(grace, 0), tools)
}

// toolList joins tool names for a sentence; without tools, the default ones.
func toolList(tools []string) string {
	if len(tools) == 0 {
		tools = schema.TerminalTools()
	}
	quoted := make([]string, len(tools))
	for i, t := range tools {
		quoted[i] = "`" + t + "`"
	}
	last := len(quoted) - 1
	if last == 0 {
		return quoted[0]
	}
	return strings.Join(quoted[:last], ", ") + " or " + quoted[last]
}
