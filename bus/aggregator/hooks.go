package aggregator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/hooksyaml"
)

// Hooks serves a request about the hooks that are registered at run time for
// an agent, or for all (empty).
func (a *Aggregator) Hooks(ctx context.Context, agent string, req *schema.HooksRequest) (*schema.HooksAnswer, error) {
	if a.opt.Configs == nil {
		return nil, &schema.ControlError{Code: schema.CodeUnavailable, Message: "this broker does not store the configuration"}
	}
	switch req.Action {
	case schema.ActionRegister:
		return a.register(ctx, agent, req)
	case schema.ActionUnregister:
		return a.unregister(ctx, agent, req)
	case schema.ActionList:
		return a.registered(ctx, agent)
	}
	return nil, badRequest("hooks has no action %q; use %s, %s or %s",
		req.Action, schema.ActionRegister, schema.ActionUnregister, schema.ActionList)
}

func (a *Aggregator) register(ctx context.Context, agent string, req *schema.HooksRequest) (*schema.HooksAnswer, error) {
	text, err := documentOf(agent, req.Hooks)
	if err != nil {
		return nil, err
	}
	var names []string
	done, err := a.change(ctx, func(before *schema.Config) (application, error) {
		doc, err := hooksyaml.Read("request", text, a.readOptions(func(name string) bool { return !replaceable(before, agent, name) }))
		if err != nil {
			return application{}, badRequest("%s", sentences(err))
		}
		app := application{force: req.Force, minor: true}
		app.cfg, names = register(before, &doc.Config)
		app.note = fmt.Sprintf("registered %s for %s", strings.Join(names, ", "), whose(agent))
		if app.cfg.Dir == "" {
			app.cfg.Dir = req.Dir
		}
		return app, nil
	})
	return hooksAnswer(done, names), err
}

// sentences returns the faults without their positions. They are in a document that the client has
// not written.
func sentences(err error) string {
	faults, ok := errors.AsType[hooksyaml.Faults](err)
	if !ok {
		return err.Error()
	}
	all := make([]string, len(faults))
	for i, f := range faults {
		all[i] = strings.TrimSuffix(f.Message+"; "+f.Hint, "; ")
	}
	return strings.Join(all, "\n")
}

// documentOf returns a hooks.yaml, as JSON, with the hooks to register.
func documentOf(agent string, hooks jsontext.Value) ([]byte, error) {
	if len(hooks) == 0 {
		return nil, badRequest(`hooks is missing; send the value of hooks: in a hooks.yaml, as JSON, such as {"PreToolUse": [{"handler": "./check.sh"}]}`)
	}
	// Strings as they are: YAML does not know all of JSON's escapes.
	if err := hooks.Format(); err != nil {
		return nil, badRequest("hooks is not JSON: %v", err)
	}
	type own struct {
		ID    string         `json:"id"`
		Hooks jsontext.Value `json:"hooks"`
	}
	doc := struct {
		Presets []string       `json:"presets"`
		Hooks   jsontext.Value `json:"hooks,omitzero"`
		Agents  []own          `json:"agents,omitzero"`
	}{Presets: []string{}} // these are the file's
	if agent == "" {
		doc.Hooks = hooks
	} else {
		doc.Agents = []own{{agent, hooks}}
	}
	return schema.Marshal(&doc)
}

func (a *Aggregator) unregister(ctx context.Context, agent string, req *schema.HooksRequest) (*schema.HooksAnswer, error) {
	if len(req.Names) == 0 && len(req.Overrides) == 0 {
		return nil, badRequest("names and overrides are missing; send those that list shows")
	}
	done, err := a.change(ctx, func(before *schema.Config) (app application, err error) {
		app.note = fmt.Sprintf("unregistered %s for %s", strings.Join(req.Names, ", "), whose(agent))
		app.force, app.minor = true, true // to unregister a hook loads nothing
		app.cfg, err = unregister(before, agent, req.Names, req.Overrides)
		return app, err
	})
	return hooksAnswer(done, req.Names), err
}

func hooksAnswer(done applied, names []string) *schema.HooksAnswer {
	answer := &schema.HooksAnswer{Version: done.version, Changed: done.changed, Refused: done.refused, Problems: told(done.problems)}
	if !done.refused {
		answer.Names = names
	}
	return answer
}

// registered lists the hooks registered for an agent, or for all.
func (a *Aggregator) registered(ctx context.Context, agent string) (*schema.HooksAnswer, error) {
	cfg, err := a.opt.Configs.Current(ctx)
	if err != nil {
		return nil, err
	}
	answer := &schema.HooksAnswer{Version: cfg.Version}
	for _, h := range cfg.Hooks {
		if h.Registered && h.Agent == agent {
			answer.Hooks = append(answer.Hooks, h)
		}
	}
	answer.Overrides = slices.DeleteFunc(cfg.Overrides, func(o schema.Override) bool { return !o.Registered || o.Agent != agent })
	return answer, nil
}
