// Package cond evaluates the `when` conditions of hooks: CEL over the fields
// of the event. It is apart from dispatch because CEL is heavy and only
// brokers need it.
package cond

import (
	"fmt"
	"math"

	"cel.dev/cel-go/cel"

	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/schema"
)

// costLimit bounds one evaluation. A condition stands on the path of every
// call it is asked about; what needs more work than this belongs into a hook.
const costLimit = 1 << 20

// A Compiler compiles conditions. Its environment knows the event's fields by
// type, so that a typing mistake is found when the file is read.
type Compiler struct{ env *cel.Env }

// NewCompiler makes a Compiler.
func NewCompiler() (*Compiler, error) {
	env, err := cel.NewEnv(
		cel.Variable("hook_type", cel.StringType),
		cel.Variable("event_id", cel.StringType),
		cel.Variable("session_id", cel.StringType),
		cel.Variable("orchestrator_id", cel.StringType),
		cel.Variable("agent_id", cel.StringType),
		cel.Variable("runtime", cel.StringType),
		cel.Variable("timestamp", cel.TimestampType),
		cel.Variable("tool_name", cel.StringType),
		cel.Variable("tool_kind", cel.StringType),
		cel.Variable("tool_input", cel.MapType(cel.StringType, cel.DynType)),
		cel.Variable("tool_output", cel.DynType),
		cel.Variable("tool_use_id", cel.StringType),
		cel.Variable("error", cel.StringType),
		cel.Variable("message", cel.DynType),
		cel.Variable("prompt", cel.StringType),
		cel.Variable("response", cel.DynType),
		cel.Variable("iteration", cel.IntType),
		cel.Variable("cwd", cel.StringType),
		cel.Variable("labels", cel.MapType(cel.StringType, cel.StringType)),
	)
	if err != nil {
		return nil, fmt.Errorf("preparing conditions: %w", err)
	}
	return &Compiler{env: env}, nil
}

// Compile checks and compiles one condition.
func (c *Compiler) Compile(expr string) (dispatch.Condition, error) {
	ast, issues := c.env.Compile(expr)
	if err := issues.Err(); err != nil {
		return nil, fmt.Errorf("%w; write a CEL condition over the event's fields, such as tool_input.command.contains(\"rm \")", err)
	}
	if t := ast.OutputType(); !t.IsExactType(cel.BoolType) && !t.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("the condition is a %s, not true or false; compare it with something", t)
	}
	prg, err := c.env.Program(ast, cel.CostLimit(costLimit), cel.EvalOptions(cel.OptOptimize))
	if err != nil {
		return nil, fmt.Errorf("the condition can not be compiled: %w", err)
	}
	return condition{prg}, nil
}

type condition struct{ prg cel.Program }

// Holds evaluates the condition on e.
func (c condition) Holds(e *schema.Event) (bool, error) {
	vars, err := variables(e)
	if err != nil {
		return false, err
	}
	out, _, err := c.prg.Eval(vars)
	if err != nil {
		return false, fmt.Errorf("evaluating the condition: %w", err)
	}
	ok, isBool := out.Value().(bool)
	if !isBool {
		return false, fmt.Errorf("the condition came to a %s, not to true or false", out.Type().TypeName())
	}
	return ok, nil
}

func variables(e *schema.Event) (map[string]any, error) {
	input := map[string]any{}
	if len(e.ToolInput) > 0 {
		if err := schema.Unmarshal(e.ToolInput, &input); err != nil {
			return nil, fmt.Errorf("tool_input: %w", err)
		}
		integers(input)
	}
	vars := map[string]any{
		"hook_type": string(e.HookType), "event_id": e.EventID, "session_id": e.SessionID,
		"orchestrator_id": e.OrchestratorID, "agent_id": e.AgentID, "runtime": e.Runtime,
		"timestamp": e.Timestamp, "tool_name": e.ToolName, "tool_kind": e.ToolKind,
		"tool_input": input, "tool_use_id": e.ToolUseID, "error": e.Error, "prompt": e.Prompt,
		"iteration": e.Iteration, "cwd": e.Cwd, "labels": e.Labels,
	}
	for name, raw := range map[string][]byte{"tool_output": e.ToolOutput, "message": e.Message, "response": e.Response} {
		var v any
		if len(raw) > 0 {
			if err := schema.Unmarshal(raw, &v); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
		vars[name] = integers(v)
	}
	return vars, nil
}

// integers turns whole numbers into integers, because a person who writes
// `tool_input.lines > 100` compares with an integer.
func integers(v any) any {
	switch v := v.(type) {
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return int64(v)
		}
	case map[string]any:
		for k, x := range v {
			v[k] = integers(x)
		}
	case []any:
		for i, x := range v {
			v[i] = integers(x)
		}
	}
	return v
}
