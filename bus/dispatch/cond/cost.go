package cond

import (
	"fmt"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/functions"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"
)

const (
	// costLimit bounds one evaluation, in about CEL's steps. A condition delays the call,
	// so more work belongs in a hook.
	costLimit = 1 << 14
	// maxWork bounds one call of a function before it is called, because CEL counts its
	// cost only afterwards. One unit is about one byte that is read.
	maxWork = 1 << 20
	// unit is the work that costs as much as one step.
	unit = maxWork / costLimit
	// zone is the work of finding a time zone by its name, in files.
	zone = 100 * unit
)

// works returns the work of a call, by function. It has the functions that read a whole
// text, or a whole list for each item of another.
var works = map[string]func(args []ref.Val) uint64{
	"contains":        func(a []ref.Val) uint64 { return (length(a, 0) + length(a, 1)) / 8 },
	"size":            func(a []ref.Val) uint64 { return length(a, 0) / 2 },
	"lowerAscii":      func(a []ref.Val) uint64 { return length(a, 0) * 8 },
	"upperAscii":      func(a []ref.Val) uint64 { return length(a, 0) * 8 },
	"trim":            func(a []ref.Val) uint64 { return length(a, 0) },
	"charAt":          func(a []ref.Val) uint64 { return length(a, 0) * 4 },
	"substring":       func(a []ref.Val) uint64 { return length(a, 0) * 4 },
	"split":           func(a []ref.Val) uint64 { return length(a, 0) + 32*pieces(a) },
	"replace":         func(a []ref.Val) uint64 { return length(a, 0) + pieces(a)*(16+length(a, 2)) },
	"join":            func(a []ref.Val) uint64 { return 32*deep(a, 0) + items(a, 0)*length(a, 1) },
	"indexOf":         func(a []ref.Val) uint64 { return length(a, 0) * (2 + length(a, 1)) },
	"lastIndexOf":     func(a []ref.Val) uint64 { return length(a, 0) * (2 + length(a, 1)) },
	"under":           func(a []ref.Val) uint64 { return length(a, 0) + length(a, 1) },
	"glob":            func(a []ref.Val) uint64 { return length(a, 0) + 64*length(a, 1) },
	"inside":          func([]ref.Val) uint64 { return 2 * unit },
	"host":            func(a []ref.Val) uint64 { return length(a, 0) },
	"secrets.found":   func(a []ref.Val) uint64 { return 8 * length(a, 0) },
	"sets.contains":   pairs,
	"sets.intersects": pairs,
	"sets.equivalent": func(a []ref.Val) uint64 { return 2 * pairs(a) },
}

// light returns the work of calls that need no limit in advance, and whose work is not
// the length of their arguments.
var light = map[string]func(args []ref.Val) uint64{
	"startsWith": func(a []ref.Val) uint64 { return length(a, 1) / 8 },
	"endsWith":   func(a []ref.Val) uint64 { return length(a, 1) / 8 },
	"_==_":       compared,
	"_!=_":       compared,
	"@in":        func(a []ref.Val) uint64 { return 32 * deep(a, 1) },
}

// pairs is the work of comparing every item of one list with every item of another.
func pairs(a []ref.Val) uint64 { return 32 * deep(a, 0) * items(a, 1) }

func compared(a []ref.Val) uint64 {
	return min(length(a, 0), length(a, 1))/8 + 32*min(deep(a, 0), deep(a, 1))
}

// pieces counts how often a text contains another. It returns 0 for a text that exceeds
// the limit anyway.
func pieces(a []ref.Val) uint64 {
	text, _ := a[0].(types.String)
	if len(text) > maxWork {
		return 0
	}
	part, _ := a[1].(types.String)
	return uint64(strings.Count(string(text), string(part)))
}

// length returns the length of a text or of bytes; 0: the argument is neither.
func length(args []ref.Val, i int) uint64 {
	if i < len(args) {
		switch v := args[i].(type) {
		case types.String:
			return uint64(len(v))
		case types.Bytes:
			return uint64(len(v))
		}
	}
	return 0
}

// items counts the items of a list, or the fields of a map.
func items(args []ref.Val, i int) uint64 {
	if n, ok := args[i].(traits.Sizer); ok && length(args, i) == 0 {
		size, _ := n.Size().(types.Int)
		return uint64(size)
	}
	return 0
}

// deep counts all values in a list or a map.
func deep(args []ref.Val, i int) uint64 {
	if n := items(args, i); n > 0 {
		return max(n, within(args[i].Value()))
	}
	return 0
}

// within counts the values in v. A long text counts as several.
func within(v any) (n uint64) {
	switch v := v.(type) {
	case string:
		return uint64(len(v)) / 256
	case []any:
		for _, x := range v {
			n += 1 + within(x)
		}
	case map[string]any:
		for _, x := range v {
			n += 1 + within(x)
		}
	case []ref.Val:
		for _, x := range v {
			n += 1 + within(x.Value())
		}
	}
	return n
}

// tooMuch returns an error if a call would be too much work, or nil.
func tooMuch(function string, work uint64) ref.Val {
	if work <= maxWork {
		return nil
	}
	return types.NewErr("%s on a value of this size would exceed the cost limit", function)
}

// costs counts calls by their work.
type costs struct {
	patterns map[string]pattern // of the condition
}

// CallCost returns the cost of a call. CEL's own count depends on the overload of a
// function, which is unknown before the type of a field is.
func (c *costs) CallCost(function, _ string, args []ref.Val, _ ref.Val) *uint64 {
	n := 1 + c.work(function, args)/unit
	return &n
}

func (c *costs) work(function string, args []ref.Val) (n uint64) {
	if work := works[function]; work != nil {
		return work(args)
	}
	if work := light[function]; work != nil {
		return work(args)
	}
	if strings.HasPrefix(function, "get") && len(args) == 2 {
		return zone
	}
	if function == "matches" {
		text, _ := args[0].(types.String)
		of, _ := args[1].(types.String)
		return c.patterns[string(of)].work(string(text))
	}
	for i := range args {
		n += length(args, i)
	}
	return n
}

// sizes makes all sizes unknown, so that the estimate is the least that a condition must
// cost.
type sizes struct{}

// EstimateCallCost leaves functions to CEL.
func (sizes) EstimateCallCost(_, _ string, _ *cost.AstNode, _ []cost.AstNode) *cost.CallEstimate {
	return nil
}

// EstimateSize returns nil: no size is known.
func (sizes) EstimateSize(cost.AstNode) *cost.SizeEstimate { return nil }

// guard applies maxWork before each call of a function in works.
type guard map[string]functions.FunctionOp // by overload, and by function

func newGuard(env *cel.Env) (guard, error) {
	g := guard{}
	declared := env.Functions()
	for name := range works {
		bindings, err := declared[name].Bindings()
		if err != nil {
			return nil, fmt.Errorf("the function %s: %w", name, err)
		}
		for _, b := range bindings {
			g[b.Operator] = implementation(b)
		}
	}
	return g, nil
}

func implementation(b *functions.Overload) functions.FunctionOp {
	return func(args ...ref.Val) ref.Val {
		switch {
		case len(args) == 1 && b.Unary != nil:
			return b.Unary(args[0])
		case len(args) == 2 && b.Binary != nil:
			return b.Binary(args[0], args[1])
		case b.Function != nil:
			return b.Function(args...)
		}
		return types.NoSuchOverloadErr()
	}
}

func (g guard) decorate(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	call, ok := i.(interpreter.InterpretableCall)
	if !ok || works[call.Function()] == nil {
		return i, nil
	}
	name, impl := call.Function(), g[call.OverloadID()]
	if impl == nil {
		impl = g[name]
	}
	if impl == nil {
		return nil, fmt.Errorf("the function %s has no implementation", name)
	}
	return interpreter.NewCall(call.ID(), name, call.OverloadID(), call.Args(), func(args ...ref.Val) ref.Val {
		if err := tooMuch(name, works[name](args)); err != nil {
			return err
		}
		return impl(args...)
	}), nil
}
