package loop_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/bus/agent/loop"
	"github.com/hookfabric/hookfabric/schema"
)

// asked records that a hook was asked.
func asked(trail *[]string, name string) loop.HandleOption {
	return loop.WithEffects(loop.EffectFunc(func(context.Context, *loop.Status) error {
		*trail = append(*trail, name)
		return nil
	}))
}

// A stop after a tool call, or at the end of a query, has the result or response that
// counts. Later hooks are not asked, and outcomes of earlier hooks stay.
func TestAStopAfterAToolCarriesTheResult(t *testing.T) {
	for at, line := range map[schema.EventType]int{schema.PostToolUse: 2, schema.ToolError: 3} {
		t.Run(string(at), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := fabric(t, nil)
				o, _ := query(f)
				l := start(t, o)
				var trail []string
				l.On(at).Handle(schema.Deny, loop.WithReason("feedback"), loop.WithInjection("before", schema.ToolResult), asked(&trail, "first"))
				l.On(at).Handle(schema.Stop, loop.WithValue(schema.ToolOutcome{Output: jsontext.Value(`"from the cache"`)}), asked(&trail, "stop"))
				l.On(at).Handle(schema.Fail, asked(&trail, "later"))
				answer, err := l.Run(t.Context(), "1+2?")
				if err != nil || answer.Status != loop.Answered || answer.Content != "three" {
					t.Fatalf("%+v, %v", answer, err)
				}
				same(t, "asked", []string{"first", "stop"}, trail)
				if got := talk(l.History())[line]; !strings.HasSuffix(got, `"from the cache"["before" "feedback"]`) {
					t.Errorf("the result is %s", got)
				}
				if result := l.History()[line].Result; result.Error != "" {
					t.Errorf("the tool's error %q stands beside the result of the stop", result.Error)
				}
				if e := f.of(at); e.HookType != "" {
					t.Error("the fabric was asked after a stop of the program")
				}
			})
		})
	}
}

func TestAStopOfTheFabricAfterAToolCarriesTheResult(t *testing.T) {
	for at, line := range map[schema.EventType]int{schema.PostToolUse: 2, schema.ToolError: 3} {
		for name, order := range map[string]loop.Order{"program first": loop.InProcessFirst, "fabric first": loop.RemoteFirst} {
			t.Run(string(at)+", "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := fabric(t, on(at, func(_ *schema.Event, v *schema.Verdict) {
						v.Decision, v.Value, v.UpdatedOutput = schema.Stop, jsontext.Value(`{"n":1}`), jsontext.Value(`"earlier"`)
					}))
					o, _ := query(f)
					o.Order = order
					l := start(t, o)
					var trail []string
					l.On(at).Handle(schema.Continue, asked(&trail, "program"))
					if _, err := l.Run(t.Context(), "1+2?"); err != nil {
						t.Fatal(err)
					}
					if got := talk(l.History())[line]; !strings.HasSuffix(got, `{"n":1}[]`) || l.History()[line].Result.Error != "" {
						t.Errorf("the result is %s", got)
					}
					if want := map[loop.Order]int{loop.InProcessFirst: 1}[order]; len(trail) != want {
						t.Errorf("the program's hook was asked %d times, want %d", len(trail), want)
					}
				})
			})
		}
	}
}

// A fail does not end the chain after a tool, and a later stop does not undo it.
func TestAStopDoesNotUndoAFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fabric(t, nil)
		o, _ := query(f)
		l := start(t, o)
		var trail []string
		l.On(schema.PostToolUse).Handle(schema.Fail, loop.WithReason("it leaked"), asked(&trail, "fail"))
		l.On(schema.PostToolUse).Handle(schema.Stop, loop.WithValue(schema.ToolOutcome{Output: jsontext.Value(`"fine"`)}), asked(&trail, "stop"))
		l.On(schema.PostToolUse).Handle(schema.Continue, asked(&trail, "later"))
		answer, err := l.Run(t.Context(), "1+2?")
		if !errors.Is(err, loop.ErrFailed) || answer.Reason != "it leaked" {
			t.Errorf("%+v, %v", answer, err)
		}
		same(t, "asked", []string{"fail", "stop"}, trail)
		if e := f.of(schema.PostToolUse); e.HookType != "" {
			t.Error("the fabric was asked after a stop")
		}
	})
}

func TestAStopAtTheEndOfAQueryCarriesTheResponse(t *testing.T) {
	for name, c := range map[string]struct {
		judge func(v *schema.Verdict)
		hooks func(l *loop.Loop, trail *[]string)
		asked []string
	}{
		"in the program": {nil, func(l *loop.Loop, trail *[]string) {
			l.On(schema.QueryEnd).Handle(schema.Stop, loop.WithValue(loop.Response{Content: "stopped"}), asked(trail, "stop"))
			l.On(schema.QueryEnd).Handle(schema.Fail, asked(trail, "later"))
		}, []string{"stop"}},
		"in the fabric": {func(v *schema.Verdict) { v.Decision, v.Value = schema.Stop, jsontext.Value(`"stopped"`) }, func(l *loop.Loop, trail *[]string) {
			l.On(schema.QueryEnd).Handle(schema.Continue, loop.WithValue(loop.Response{Content: "before"}), asked(trail, "before"))
		}, []string{"before"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := fabric(t, on(schema.QueryEnd, func(_ *schema.Event, v *schema.Verdict) {
					if c.judge != nil {
						c.judge(v)
					}
				}))
				o, _ := query(f)
				l := start(t, o)
				var trail []string
				c.hooks(l, &trail)
				answer, err := l.Run(t.Context(), "1+2?")
				if err != nil || answer.Content != "stopped" || answer.Status != loop.Answered {
					t.Errorf("%+v, %v", answer, err)
				}
				same(t, "asked", c.asked, trail)
			})
		})
	}
}

// If a hook fails a query at its end, the query returns that error, even after a
// response.
func TestAFailAtQueryEndIsTheQuerysError(t *testing.T) {
	fail := func(l *loop.Loop) { l.On(schema.QueryEnd).Handle(schema.Fail, loop.WithReason("no license")) }
	for name, order := range map[string]loop.Order{"in the program": loop.InProcessFirst, "in the fabric": loop.RemoteFirst} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := fabric(t, on(schema.QueryEnd, func(_ *schema.Event, v *schema.Verdict) {
					if order == loop.RemoteFirst {
						v.Decision, v.Reason = schema.Fail, "no license"
					}
				}))
				o, _ := query(f)
				var chunks []loop.Chunk
				o.Output = func(c loop.Chunk) { chunks = append(chunks, c) }
				l := start(t, o)
				if order == loop.InProcessFirst {
					fail(l)
				}
				answer, err := l.Run(t.Context(), "1+2?")
				if !errors.Is(err, loop.ErrFailed) || !strings.Contains(err.Error(), "no license") ||
					answer.Status != loop.Failed || answer.Reason != "no license" || answer.Error != err.Error() || len(answer.HookErrors) != 0 {
					t.Errorf("%+v, %v", answer, err)
				}
				if last := chunks[len(chunks)-2:]; last[0].Text == "three" || last[1].Kind != loop.EndChunk || last[1].Text != err.Error() {
					t.Errorf("the last chunk has the end %+v", last)
				}
			})
		})
	}
	t.Run("of a query that failed before", func(t *testing.T) {
		l := start(t, loop.Options{Model: &script{turns: []schema.Message{says("done")}}})
		l.On(schema.BeforeFinalResponse).Handle(schema.Fail, loop.WithReason("no tags"))
		fail(l)
		answer, err := l.Run(t.Context(), "go")
		if !errors.Is(err, loop.ErrFailed) || answer.Status != loop.Failed || answer.Reason != "no tags" || answer.Error != err.Error() ||
			!strings.Contains(answer.Error, "no tags") || !strings.Contains(answer.Error, "no license") {
			t.Errorf("%+v, %v", answer, err)
		}
	})
}
