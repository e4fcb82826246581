package dialect

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// trimmed returns a payload without surrounding space and without the byte order mark that some
// Windows programs write.
func trimmed(payload []byte) []byte {
	return bytes.TrimSpace(bytes.TrimPrefix(bytes.TrimSpace(payload), []byte("\xef\xbb\xbf")))
}

// glance reads the strings of the outermost object into the given variables, up to the first syntax
// error. It serves payloads that are not fully readable. The first of several members with the same
// name counts.
func glance(data []byte, into map[string]*string) {
	dec := jsontext.NewDecoder(bytes.NewReader(data), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	if t, err := dec.ReadToken(); err != nil || t.Kind() != '{' {
		return
	}
	for {
		name, err := dec.ReadToken()
		if err != nil || name.Kind() != '"' {
			return
		}
		at := into[name.String()]
		value, err := dec.ReadValue()
		if err != nil {
			return
		}
		var s string
		if at != nil && *at == "" && value.Kind() == '"' && schema.Unmarshal(value, &s) == nil {
			*at = s
		}
	}
}

// The phases of a tool call in its keys.
const (
	before = "pre"
	after  = "post"
)

// keyed sets the keys of a tool call: from the runtime's id of the call, or else from its contents.
func (c *Call) keyed(phase string) {
	if id := c.Event.ToolUseID; id != "" {
		c.Key, c.ByID, c.Pair = phase+"/"+id, true, id
		return
	}
	same := c.Event
	same.SessionID += c.Subagent
	c.Pair = callHash(&same)
	c.Key = phase + "/" + c.Pair
}

// callHash returns the same value for all deliveries of a call without an id. It compares numbers as
// they are written, because numbers that are equal as a float64 may differ for the tool.
func callHash(e *schema.Event) string {
	input := e.ToolInput.Clone()
	if input.Canonicalize(jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false)) != nil {
		input = e.ToolInput
	}
	h := sha256.New()
	for _, part := range []string{e.SessionID, e.ToolName, string(input)} {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		h.Write([]byte(part))
	}
	return hex.EncodeToString(h.Sum(nil))
}
