package fleet

import (
	"errors"
	"fmt"
	"hash/crc64"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// markKey is the member of a tool's input that makes a call one of a kind.
const markKey = "fleet"

// A mark is that member.
type mark struct {
	// Nonce is drawn for each call. Its last bit says whether the guard denies it.
	Nonce string `json:"nonce"`
	// Stamps are of the hooks that rewrote the input, in their order.
	Stamps []stamp `json:"stamps,omitzero"`
	// Output is the checksum of what the tool returned; only after the call.
	Output string `json:"output,omitzero"`
}

// A stamp is one hook's, with a checksum of the input as that hook saw it.
type stamp struct {
	By  string `json:"by"`
	Saw string `json:"saw"`
}

// nonce is how a number stands in a mark.
func nonce(n uint64) string { return strconv.FormatUint(n, 36) }

// denies is what the guard decides.
func (m *mark) denies() (bool, error) {
	n, err := strconv.ParseUint(m.Nonce, 36, 64)
	if err != nil {
		return false, fmt.Errorf("the nonce %q is not a number", m.Nonce)
	}
	return n&1 == 1, nil
}

// checksum is that of a value, however it is written.
func checksum(v jsontext.Value) (string, error) {
	v = v.Clone()
	if err := v.Canonicalize(); err != nil {
		return "", fmt.Errorf("the input is not valid JSON: %w", err)
	}
	return strconv.FormatUint(crc64.Checksum(v, crc64.MakeTable(crc64.ECMA)), 36), nil
}

// marked reads the mark of an input.
func marked(input jsontext.Value) (fields map[string]jsontext.Value, m mark, err error) {
	if err := schema.Unmarshal(input, &fields); err != nil {
		return nil, m, fmt.Errorf("the tool's input: %w", err)
	}
	if err := schema.Unmarshal(fields[markKey], &m); err != nil {
		return nil, m, fmt.Errorf("the mark in the tool's input: %w", err)
	}
	return fields, m, nil
}

// remarked is an input with another mark, in its canonical form.
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

// stamped is the input as the hook by leaves it.
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

// errChain is an input whose stamps are not what their hooks would have left.
var errChain = errors.New("the stamps do not fit the input")

// unstamped takes all stamps off again, the last one first, and looks whether each
// hook saw what the one before it left.
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
			m.Stamps = nil // as it was: there was no list
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
