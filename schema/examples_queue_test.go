package schema_test

import (
	"strings"

	"github.com/hookfabric/hookfabric/schema"
)

// queueing returns the control requests about the queue, and their answers.
func queueing() map[string]any {
	human := schema.Receipt{Key: "a-agent1.operator.stop-1", Sequence: 45, State: schema.Queued}
	return map[string]any{
		"inject": &schema.InjectRequest{
			Content: "Stop after this step.", Source: schema.SourceHuman, Strategy: schema.UserMessage, Matcher: "Bash|Write",
			TTL: took(3600e6), Producer: "operator", Key: "stop-1",
		},
		"inject.session": &schema.InjectRequest{Session: "7be05901", Object: object("3c"), Source: "ci", Producer: "ci", Number: 17, LateJoiners: true},
		"inject.all":     &schema.InjectRequest{All: true, Content: "The proxy is down until noon."},
		"inject.subagent": &schema.InjectRequest{Producer: "orch-7", Key: "sub-3", Subagent: &schema.SubagentResult{
			ID: "sub-3", Status: "timeout", Answer: "Two of three files are done.", Error: "it ran out of time", Took: took(90e6),
			Workspace: "/srv/agents/sub-3", InputTokens: 1200, OutputTokens: 340, Completion: 66,
		}},
		"inject.background": &schema.InjectRequest{Background: &schema.BackgroundResult{
			ID: "bg-1", Tool: "Bash", Status: "failed", Result: "42 tests ran", Error: "exit status 1",
		}},
		"inject.receipt": &human,
		"inject.duplicate": &schema.Receipt{
			Key: human.Key, Sequence: 45, Duplicate: true, State: schema.Delivered,
		},
		"pending": &schema.PendingRequest{Limit: 20},
		"pending.answer": &schema.PendingAnswer{Total: 7, Items: []schema.PendingItem{
			{
				Key: "s-7be05901.ci.17", Sequence: 41, Scope: schema.Scope{Session: "7be05901"}, Source: "ci", Strategy: schema.ToolResult,
				State: schema.Queued, Length: 9437184, Age: took(60e6), ExpiresIn: took(86340e6), Matcher: "Bash", Delivered: 2,
			},
			{
				Key: human.Key, Sequence: 45, Scope: schema.Scope{Agent: "agent1"}, Source: schema.SourceHuman, Strategy: schema.UserMessage,
				State: schema.Leased, Event: eventID, Length: 21, Age: took(2e6),
			},
		}},
		"withdraw":        &schema.WithdrawRequest{Key: "s-7be05901.ci.17"},
		"withdraw.answer": &schema.WithdrawAnswer{Key: "s-7be05901.ci.17", State: schema.Withdrawn, Delivered: 2},
		"ack.release":     &schema.AckRequest{Fabric: fabric, Events: []string{eventID}, Hold: true, Release: true},
		"ack.hold":        &schema.AckRequest{Fabric: fabric, Events: []string{eventID}, Hold: true},
		"drain":           &schema.DrainRequest{EventID: eventID, Session: "7be05901"},
		"drain.one":       &schema.DrainRequest{EventID: eventID, One: true},
		"drain.one.answer": &schema.DrainAnswer{
			Fabric: fabric, EventID: eventID, Content: "[Human Input] Stop after this step.", Matcher: "mcp__files__*", Sequence: 45, Remaining: 2, ExpiresIn: took(60e6),
			Injections: []schema.Injection{{
				Content: "[Human Input] Stop after this step.", Strategy: schema.ToolResult, Hook: "human_input", Source: schema.SourceHuman, Sequence: 45,
			}},
		},
		"drain.answer": &schema.DrainAnswer{
			Fabric: fabric, EventID: eventID, Content: "[Human Input] Stop after this step.",
			Injections: []schema.Injection{{
				Content: "[Human Input] Stop after this step.", Strategy: schema.UserMessage, Hook: schema.HumanInput,
				Source: schema.SourceHuman, Sequence: 45,
			}},
			Workspaces: []schema.Workspace{workspace()}, Remaining: 1,
		},
		"fetch":        &schema.FetchRequest{Digest: object("c4").Digest, Session: "7be05901", Offset: 1048576},
		"fetch.answer": &schema.FetchAnswer{Data: []byte("package parser\n"), Size: 1048591},
		"answer": &schema.AnswerRequest{
			Session: "7be05901", Label: "agent2.1", Content: "The parser is in /srv/agents/agent2/parser.go.", Workspace: "/srv/agents/agent2", Snapshot: object("c4"),
		},
		"answer.long":    &schema.AnswerRequest{Session: "7be05901", Object: object("3c")},
		"answer.receipt": &schema.AnswerReceipt{Receipt: schema.Receipt{Key: "s-7be05901.answer.agent2=2E1", Sequence: 46, State: schema.Queued}, Name: "agent2", Label: "agent2.1"},
		"mode":           &schema.ModeRequest{VoteOnly: new(true)},
		"mode.show":      &schema.ModeRequest{},
		"mode.answer":    &schema.ModeAnswer{VoteOnly: true},
		"round":          &schema.RoundRequest{Action: schema.RoundStart, Initial: span(600e6), Subsequent: span(300e6), Grace: span(120e6), Number: new(1)},
		"round.answer": &schema.Round{
			Agent: "agent1", Start: 12, Number: 1, Initial: span(600e6), Subsequent: span(300e6), Grace: took(120e6), Elapsed: took(450e6),
			WrapUp: true, Warned: true, Since: took(130e6), Denials: 10, Terminate: true,
		},
	}
}

func object(digit string) *schema.Object {
	return &schema.Object{Digest: "sha256-" + strings.Repeat(digit, 32), Size: 1048591}
}

func span(microseconds float64) *schema.Duration { return new(took(microseconds)) }
