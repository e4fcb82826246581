package fleet

import (
	"fmt"

	"github.com/hookfabric/hookfabric/schema"
)

// The pools that workers of the fleet serve. Two, so that a chain of rewriting
// hooks goes from one to the other.
const (
	pool    = "fleet"
	further = "fleet-further"
)

// The hooks.
const (
	insideAllow = "inside-allow"
	insideDeny  = "inside-deny"
	guard       = "guard"
	stampFirst  = "stamp-1"
	stampSecond = "stamp-2"
	stampThird  = "stamp-3"
	slowHook    = "slow"
	observer    = "observe"
)

// The handlers that the workers serve.
const (
	guardHandler   = "guard"
	stampHandler   = "stamp"
	slowHandler    = "slow"
	observeHandler = "observe"
)

// chain returns the hooks that match a class before the tool, in order.
func (c class) chain() []string {
	switch c {
	case inside:
		return []string{insideAllow}
	case refused:
		return []string{insideDeny}
	case remote:
		return []string{guard}
	case rewritten:
		return []string{guard, stampFirst, stampSecond, stampThird}
	case slow:
		return []string{slowHook}
	}
	return nil
}

// closed reports whether a hook is fail-closed.
func closed(hook string) bool { return hook == guard || hook == insideDeny }

// guarded reports whether a fail-closed hook guards the class.
func (c class) guarded() bool { return c == refused || c == remote || c == rewritten }

// observed reports whether a hook judges the call after the tool.
func (c class) observed() bool { return c == remote || c == rewritten }

// hooksYAML returns the brokers' configuration.
func (m mix) hooksYAML() string {
	return fmt.Sprintf(`hooks:
  PreToolUse:
    - {name: %s, matcher: %q, type: builtin, handler: allow, readonly: true}
    - {name: %s, matcher: %q, type: builtin, handler: deny, readonly: true, fail_closed: true}
    - {name: %s, matcher: %q, type: builtin, handler: %s, pool: %s, readonly: true, fail_closed: true}
    - {name: %s, matcher: %q, type: builtin, handler: %s, pool: %s, idempotent: true}
    - {name: %s, matcher: %q, type: builtin, handler: %s, pool: %s, idempotent: true}
    - {name: %s, matcher: %q, type: builtin, handler: %s, pool: %s, idempotent: true}
    - {name: %s, matcher: %q, type: builtin, handler: %s, pool: %s, readonly: true}
  PostToolUse:
    - {name: %s, matcher: %q, type: builtin, handler: %s, pool: %s}
`,
		insideAllow, m.matcher(inside), insideDeny, m.matcher(refused),
		guard, m.matcher(remote, rewritten), guardHandler, pool,
		stampFirst, m.matcher(rewritten), stampHandler, pool,
		stampSecond, m.matcher(rewritten), stampHandler, pool,
		stampThird, m.matcher(rewritten), stampHandler, further,
		slowHook, slowPrefix+"*", slowHandler, pool,
		observer, m.matcher(remote, rewritten), observeHandler, pool)
}

// stages returns the preset's hooks, which the brokers run themselves. They are in a trail
// if they handed over items.
func stages() []string { return append(schema.DeliveryStages(), schema.RoundTimeoutPre) }
