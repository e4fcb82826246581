package fleet

import (
	"errors"
	"fmt"
	"hash/crc64"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

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

// markKey is the member of a tool's input that makes each call unique.
const markKey = "fleet"

// A mark is that member.
type mark struct {
	// Nonce is a random number for each call. Its last bit says whether the guard denies
	// it.
	Nonce string `json:"nonce"`
	// Stamps are the stamps of the hooks that rewrote the input, in their order.
	Stamps []stamp `json:"stamps,omitzero"`
	// Output is the checksum of the tool's output; only after the call.
	Output string `json:"output,omitzero"`
}

// A stamp is the name of a hook, and the checksum of the input that it saw.
type stamp struct {
	By  string `json:"by"`
	Saw string `json:"saw"`
}

// nonce encodes a number for a mark.
func nonce(n uint64) string { return strconv.FormatUint(n, 36) }

// denies returns whether the guard must deny the call.
func (m *mark) denies() (bool, error) {
	n, err := strconv.ParseUint(m.Nonce, 36, 64)
	if err != nil {
		return false, fmt.Errorf("the nonce %q is not a number", m.Nonce)
	}
	return n&1 == 1, nil
}

// checksum returns the same checksum for equal JSON values, independent of their format.
func checksum(v jsontext.Value) (string, error) {
	v = v.Clone()
	if err := v.Canonicalize(); err != nil {
		return "", fmt.Errorf("the input is not valid JSON: %w", err)
	}
	return strconv.FormatUint(crc64.Checksum(v, crc64.MakeTable(crc64.ECMA)), 36), nil
}

func marked(input jsontext.Value) (fields map[string]jsontext.Value, m mark, err error) {
	if err := schema.Unmarshal(input, &fields); err != nil {
		return nil, m, fmt.Errorf("the tool's input: %w", err)
	}
	if err := schema.Unmarshal(fields[markKey], &m); err != nil {
		return nil, m, fmt.Errorf("the mark in the tool's input: %w", err)
	}
	return fields, m, nil
}

// remarked returns an input with another mark, in its canonical form.
func remarked(fields map[string]jsontext.Value, m mark) (jsontext.Value, error) {
	text, err := schema.Marshal(m)
	if err != nil {
		return nil, err
	}
	fields[markKey] = text
	if text, err = schema.Marshal(fields); err != nil {
		return nil, err
	}
	v := jsontext.Value(text)
	return v, v.Canonicalize()
}

// stamped returns the input as the hook by leaves it.
func stamped(input jsontext.Value, by string) (jsontext.Value, error) {
	fields, m, err := marked(input)
	if err != nil {
		return nil, err
	}
	saw, err := checksum(input)
	if err != nil {
		return nil, err
	}
	m.Stamps = append(m.Stamps, stamp{By: by, Saw: saw})
	return remarked(fields, m)
}

// errChain is returned if the stamps of an input are not those that their hooks would have
// left.
var errChain = errors.New("the stamps do not fit the input")

// unstamped removes all stamps, the last one first, and checks that each hook saw what the
// one before it left.
func unstamped(input jsontext.Value) error {
	fields, m, err := marked(input)
	if err != nil {
		return err
	}
	m.Output = ""
	for len(m.Stamps) > 0 {
		last := m.Stamps[len(m.Stamps)-1]
		m.Stamps = m.Stamps[:len(m.Stamps)-1]
		if len(m.Stamps) == 0 {
			m.Stamps = nil // without stamps, the input has no list
		}
		before, err := remarked(fields, m)
		if err != nil {
			return err
		}
		saw, err := checksum(before)
		if err != nil {
			return err
		}
		if saw != last.Saw {
			return fmt.Errorf("%w: %s saw another input", errChain, last.By)
		}
	}
	return nil
}
