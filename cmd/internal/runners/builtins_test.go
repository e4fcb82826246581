package runners_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/cmd/internal/runners"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
	"github.com/hookfabric/hookfabric/workers/runnertest"
)

// always makes a hook that always gives one answer.
func always(res schema.Result) workers.Factory {
	return func(schema.Hook) (workers.Handler, error) {
		return workers.HandlerFunc(func(context.Context, *schema.Event) (schema.Result, error) { return res, nil }), nil
	}
}

func echo(schema.Hook) (workers.Handler, error) {
	return workers.HandlerFunc(func(_ context.Context, e *schema.Event) (schema.Result, error) {
		return schema.Injected(e.ToolName, schema.UserMessage), nil
	}), nil
}

func crash(schema.Hook) (workers.Handler, error) {
	return workers.HandlerFunc(func(context.Context, *schema.Event) (schema.Result, error) {
		return schema.Result{}, errors.New("out of luck")
	}), nil
}

func TestTheRunnerOfBuiltinsIsARunner(t *testing.T) {
	catalog := map[string]workers.Factory{
		"answers": always(schema.Allowed()), "refuses": always(schema.Denied(runnertest.Reason)),
		"rewrites": always(schema.Rewritten(jsontext.Value(runnertest.NewInput))), "echoes": echo, "crashes": crash,
	}
	hook := func(name string) schema.Hook {
		return schema.Hook{Name: "test", Event: schema.PreToolUse, Type: schema.Builtin, Handler: name}
	}
	runnertest.Run(t, runnertest.Suite{
		New:     func(*testing.T) workers.Runner { return runners.Builtins(catalog) },
		Answers: hook("answers"), Refuses: hook("refuses"), Rewrites: hook("rewrites"), Echoes: hook("echoes"),
		Crashes: hook("crashes"), Missing: hook("no_such_hook"),
	})
}

func TestAnUnknownNameIsAnErrorThatListsTheKnownOnes(t *testing.T) {
	r := runners.Builtins(map[string]workers.Factory{"b": echo, "a": echo})
	_, err := r.Load(schema.Hook{Handler: "c"}, workers.Site{})
	if err == nil || err.Error() != `there is no builtin "c"; write one of a, b` {
		t.Errorf("error %v", err)
	}
}

func TestABuiltinRejectsSettingsOfPrograms(t *testing.T) {
	r := runners.Builtins(map[string]workers.Factory{"a": echo})
	for _, h := range []schema.Hook{
		{Handler: "a", Shell: true}, {Handler: "a", Args: []string{"x"}}, {Handler: "a", Env: []string{"X"}},
	} {
		if _, err := r.Load(h, workers.Site{}); err == nil || !strings.Contains(err.Error(), "options") {
			t.Errorf("%+v: error %v", h, err)
		}
	}
}

func TestAnErrorOfAFactoryIsALoadError(t *testing.T) {
	r := runners.Builtins(map[string]workers.Factory{"a": func(schema.Hook) (workers.Handler, error) { return nil, os.ErrInvalid }})
	if _, err := r.Load(schema.Hook{Handler: "a"}, workers.Site{}); !errors.Is(err, os.ErrInvalid) {
		t.Errorf("error %v", err)
	}
}
