// Package cond evaluates CEL over the fields of the event: the `when` conditions of hooks, and
// the expressions of hooks of type cel. It is apart from dispatch because CEL is large.
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
// The facts of a tool call are in action, see package action, as in
//
//	action.commands.exists(c, c.name == "rm" && "r" in c.flags)
//
// CEL's own functions and macros are available, those in functions.go, and optional values (the ? above), the
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
	"slices"
	"sync"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/ext"
	"cel.dev/cel-go/interpreter"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/schema"
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
	mixed *cel.Env // for new values, whose lists and maps may have items of several types
	guard guard
	say   func() []wording // made when the first fault is worded
}

// NewCompiler makes a Compiler.
func NewCompiler() (*Compiler, error) {
	options := append(slices.Concat(declarations(), helpers()),
		cel.OptionalTypes(), ext.Strings(ext.StringsVersion(0)), ext.Sets(), ext.Lists(ext.ListsVersion(0)),
		cel.CrossTypeNumericComparisons(true),
		cel.ParserExpressionSizeLimit(maxLength), cel.ParserRecursionLimit(maxDepth), cel.ExpressionNodeLimit(maxNodes),
		cel.ParserErrorRecoveryLimit(2),
		cel.ASTValidators(patterns{}, cel.ValidateDurationLiterals(), cel.ValidateTimestampLiterals(), cel.ValidateComprehensionNestingLimit(maxLoops)),
	)
	mixed, err := cel.NewEnv(options...)
	if err != nil {
		return nil, fmt.Errorf("preparing conditions: %w", err)
	}
	env, err := mixed.Extend(cel.ASTValidators(cel.ValidateHomogeneousAggregateLiterals()))
	if err != nil {
		return nil, fmt.Errorf("preparing conditions: %w", err)
	}
	guard, err := newGuard(env)
	if err != nil {
		return nil, fmt.Errorf("preparing conditions: %w", err)
	}
	return &Compiler{env: env, mixed: mixed, guard: guard, say: sync.OnceValue(wordings)}, nil
}

// Compile checks and compiles one condition. Its error has the type
// [schema.ConditionFaults].
func (c *Compiler) Compile(expr string) (dispatch.Condition, error) {
	e, err := c.Expression(expr, Truth)
	if err != nil {
		return nil, err
	}
	return condition{e}, nil
}

// A Result is the type of an expression's value.
type Result int

// The results of expressions.
const (
	Truth  Result = iota // true or false
	Text                 // a text
	Values               // a map, a list, or any other JSON value
)

// fits reports whether values of a type can be the result. The type of a field may be unknown.
func (r Result) fits(t *cel.Type) bool {
	return t.IsExactType(cel.DynType) || r == Values || r == Truth && t.IsExactType(cel.BoolType) || r == Text && t.IsExactType(cel.StringType)
}

// An Expression is CEL over the fields of an event.
type Expression struct{ prg cel.Program }

// Expression checks and compiles an expression with a result. Its error has the type
// [schema.ConditionFaults].
func (c *Compiler) Expression(expr string, result Result) (*Expression, error) {
	if fs := unfit(expr); fs != nil {
		return nil, fs
	}
	env := c.env
	if result == Values {
		env = c.mixed
	}
	ast, issues := env.Compile(expr)
	if issues.Err() != nil {
		return nil, faults(expr, issues.Errors(), c.say())
	}
	if !result.fits(ast.OutputType()) {
		return nil, misfit(result, ast.OutputType())
	}
	least, err := env.EstimateCost(ast, sizes{})
	if err == nil && least.Min > costLimit {
		return nil, whole("the condition always exceeds the cost limit", "loop over less, or move the decision into a hook")
	}
	costs := &costs{patterns: make(map[string]pattern)}
	prg, err := env.Program(ast, cel.CostLimit(costLimit), cel.CostTracking(costs), cel.CustomDecoratorV2(c.guard.decorate),
		cel.OptimizeRegex(costs.compiled("matches_string"), costs.compiled("matches")), cel.EvalOptions(cel.OptOptimize))
	if err != nil {
		return nil, whole("the condition cannot be compiled: "+clip(err.Error()), "")
	}
	return &Expression{prg}, nil
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

// eval evaluates an expression. Decoded fields are cached for the next expression on the
// same event.
func (x *Expression) eval(v *dispatch.View) (ref.Val, error) {
	out, _, err := x.prg.Eval(factsOf(v))
	if err != nil {
		return nil, evaluation(err)
	}
	return out, nil
}

// Holds returns the value of an expression with the result [Truth].
func (x *Expression) Holds(v *dispatch.View) (bool, error) {
	out, err := x.eval(v)
	if err != nil {
		return false, err
	}
	holds, ok := out.Value().(bool)
	if !ok {
		return false, fmt.Errorf("the condition evaluated to %s, not to true or false", article(out.Type().TypeName()))
	}
	return holds, nil
}

// Text returns the value of an expression with the result [Text].
func (x *Expression) Text(v *dispatch.View) (string, error) {
	out, err := x.eval(v)
	if err != nil {
		return "", err
	}
	s, ok := out.Value().(string)
	if !ok {
		return "", fmt.Errorf("the expression evaluated to %s, not to a text", article(out.Type().TypeName()))
	}
	return s, nil
}

// JSON returns the value of an expression with the result [Values]; nil: it is null.
func (x *Expression) JSON(v *dispatch.View) (jsontext.Value, error) {
	out, err := x.eval(v)
	if err != nil {
		return nil, err
	}
	value, err := plain(out)
	if err != nil || value == nil {
		return nil, err
	}
	return schema.Marshal(value)
}

// condition is an expression that decides whether a hook runs.
type condition struct{ *Expression }

var (
	_ interpreter.Activation = (*facts)(nil)
	_ cost.Estimator         = sizes{}
)
