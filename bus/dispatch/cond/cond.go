// Package cond evaluates the `when` conditions of hooks: CEL over the fields of the event.
// It is apart from dispatch because CEL is large and only brokers need it.
//
// A condition can use the fields in fields.go: every field of the event with its type,
// except history_ref, history and native. If the event does not have a field, its value is
// an empty string, 0 or an empty map; message, response and tool_output are null then. The
// members of tool_args, tool_input and flags vary. A missing one is an error, and the
// condition counts as true, unless it tests for the member, as in
//
//	has(tool_input.command) && tool_input.command.contains("rm ")
//	tool_input.?command.orValue("").contains("rm ")
//
// A condition can also use the fields of a loop's status, see status.go: event and agent, and
// tool_call, tool_result and assistant_message, which are null at other events, as in
//
//	assistant_message != null && !assistant_message.content.contains("<answer>")
//
// CEL's own functions and macros are available, and optional values (the ? above), the
// strings extension (lowerAscii, split, replace, …), the sets extension (sets.contains,
// sets.intersects, sets.equivalent) and slice for lists. A pattern of matches is an RE2
// literal, so that it is compiled once and never comes from an event.
//
// A condition delays every call of its hook, so its cost is bounded: when it is compiled, by
// its length, its depth and its least cost, and when it is evaluated, by its work: see
// cost.go.
//
// Only this module imports it.
package cond

import (
	"fmt"
	"sync"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/ext"
	"cel.dev/cel-go/interpreter"

	"github.com/hookfabric/hookfabric/bus/dispatch"
)

// Limits of a condition's text.
const (
	maxLength = 4096 // bytes
	maxNodes  = 1000
	maxDepth  = 64
	maxLoops  = 2 // nested in each other
)

// A Compiler compiles conditions. Its environment has the types of the event's fields, so
// that a type error is found when the file is read.
type Compiler struct {
	env   *cel.Env
	guard guard
	say   func() []wording // made when the first fault is worded
}

// NewCompiler makes a Compiler.
func NewCompiler() (*Compiler, error) {
	options := append(declarations(),
		cel.OptionalTypes(), ext.Strings(ext.StringsVersion(0)), ext.Sets(), ext.Lists(ext.ListsVersion(0)),
		cel.CrossTypeNumericComparisons(true),
		cel.ParserExpressionSizeLimit(maxLength), cel.ParserRecursionLimit(maxDepth), cel.ExpressionNodeLimit(maxNodes),
		cel.ParserErrorRecoveryLimit(2),
		cel.ASTValidators(patterns{}, cel.ValidateDurationLiterals(), cel.ValidateTimestampLiterals(),
			cel.ValidateHomogeneousAggregateLiterals(), cel.ValidateComprehensionNestingLimit(maxLoops)),
	)
	env, err := cel.NewEnv(options...)
	if err != nil {
		return nil, fmt.Errorf("preparing conditions: %w", err)
	}
	guard, err := newGuard(env)
	if err != nil {
		return nil, fmt.Errorf("preparing conditions: %w", err)
	}
	return &Compiler{env: env, guard: guard, say: sync.OnceValue(wordings)}, nil
}

// Compile checks and compiles one condition. Its error has the type
// [schema.ConditionFaults].
func (c *Compiler) Compile(expr string) (dispatch.Condition, error) {
	if fs := unfit(expr); fs != nil {
		return nil, fs
	}
	ast, issues := c.env.Compile(expr)
	if issues.Err() != nil {
		return nil, faults(expr, issues.Errors(), c.say())
	}
	if !ast.OutputType().IsExactType(cel.BoolType) && !ast.OutputType().IsExactType(cel.DynType) {
		return nil, noCondition(ast.OutputType())
	}
	least, err := c.env.EstimateCost(ast, sizes{})
	if err == nil && least.Min > costLimit {
		return nil, whole("the condition always exceeds the cost limit", "loop over less, or move the decision into a hook")
	}
	costs := &costs{patterns: make(map[string]pattern)}
	prg, err := c.env.Program(ast, cel.CostLimit(costLimit), cel.CostTracking(costs), cel.CustomDecoratorV2(c.guard.decorate),
		cel.OptimizeRegex(costs.compiled("matches_string"), costs.compiled("matches")), cel.EvalOptions(cel.OptOptimize))
	if err != nil {
		return nil, whole("the condition cannot be compiled: "+clip(err.Error()), "")
	}
	return condition{prg}, nil
}

// unfit rejects text that need not be parsed.
func unfit(expr string) error {
	switch {
	case len(expr) > maxLength:
		return whole(fmt.Sprintf("the condition has %d bytes; the limit is %d", len(expr), maxLength), "move the decision into a hook")
	case !utf8.ValidString(expr):
		return whole("the condition is not valid UTF-8", "save the file as UTF-8")
	}
	return nil
}

type condition struct{ prg cel.Program }

// Holds evaluates the condition. Decoded fields are cached for the next condition on the
// same event.
func (c condition) Holds(v *dispatch.View) (bool, error) {
	f, ok := v.Made.(*facts)
	if !ok {
		f = &facts{view: v}
		v.Made = f
	}
	out, _, err := c.prg.Eval(f)
	if err != nil {
		return false, evaluation(err)
	}
	holds, ok := out.Value().(bool)
	if !ok {
		return false, fmt.Errorf("the condition evaluated to %s, not to true or false", article(out.Type().TypeName()))
	}
	return holds, nil
}

var (
	_ interpreter.Activation = (*facts)(nil)
	_ cost.Estimator         = sizes{}
)
