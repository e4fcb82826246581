package schema_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/trace"
)

// required are the headers that a message of each kind must have.
var required = map[string][]string{
	"event":         {schema.HeaderID, schema.HeaderLeft},
	"batch":         {schema.HeaderBatch, schema.HeaderConfig, schema.HeaderHooks, schema.HeaderAgent, schema.HeaderEvent, schema.HeaderID, schema.HeaderLeft},
	"call-beat":     {schema.HeaderBeat},
	"records":       {schema.HeaderNumber},
	"control-error": {schema.HeaderServiceError, schema.HeaderServiceErrorCode},
}

func TestHeaderBlocksMatchTheConstants(t *testing.T) {
	for _, file := range list(t, wireDir, ".headers.txt") {
		t.Run(file, func(t *testing.T) {
			block := read(t, filepath.Join(wireDir, file))
			names, values := parseBlock(t, block)
			kind, _, _ := strings.Cut(file, ".")
			for _, name := range required[kind] {
				if !slices.Contains(names, name) {
					t.Errorf("the header %s is missing", name)
				}
			}
			for i, name := range names {
				checkHeader(t, name, values[i])
			}
			if got := renderBlock(names, values); !bytes.Equal(got, block) {
				t.Errorf("parsed and written again:\n%q\nwant\n%q", got, block)
			}
		})
	}
}

// checkHeader compares one header's value with its documented form.
func checkHeader(t *testing.T, name, value string) {
	t.Helper()
	var err error
	switch name {
	case schema.HeaderLeft, schema.HeaderRetryAfter:
		_, err = time.ParseDuration(value)
	case schema.HeaderAttempt, schema.HeaderConfig, schema.HeaderNumber, schema.HeaderDropped:
		_, err = strconv.ParseUint(value, 10, 64)
	case schema.HeaderEvent:
		_, err = schema.ParseEventType(value)
	case schema.HeaderBeat:
		if value != "1" {
			err = fmt.Errorf("%q is not 1", value)
		}
	case schema.HeaderEncoding:
		if value != schema.SnappyFramed {
			err = fmt.Errorf("%q is not %s", value, schema.SnappyFramed)
		}
	case schema.HeaderID, schema.HeaderTool, schema.HeaderSession, schema.HeaderAck, schema.HeaderBatch, schema.HeaderHooks,
		schema.HeaderAgent, schema.HeaderServiceError, schema.HeaderServiceErrorCode:
	case schema.HeaderTraceparent, schema.HeaderTracestate:
		if name == schema.HeaderTraceparent && trace.Parse(value, "") == nil {
			err = fmt.Errorf("%q is not a traceparent", value)
		}
	default:
		err = fmt.Errorf("no constant has this name")
	}
	if len(value) > schema.MaxHeader {
		err = fmt.Errorf("%d bytes; at most %d are allowed", len(value), schema.MaxHeader)
	}
	if err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

func parseBlock(t *testing.T, block []byte) (names, values []string) {
	t.Helper()
	lines := strings.Split(string(block), "\r\n")
	if lines[0] != "NATS/1.0" || !strings.HasSuffix(string(block), "\r\n\r\n") {
		t.Fatalf("not a header block: %q", block)
	}
	for _, line := range lines[1 : len(lines)-2] {
		name, value, ok := strings.Cut(line, ": ")
		if !ok || slices.Contains(names, name) {
			t.Fatalf("faulty or repeated line %q", line)
		}
		names, values = append(names, name), append(values, value)
	}
	return names, values
}

func renderBlock(names, values []string) []byte {
	b := []byte("NATS/1.0\r\n")
	for i, name := range names {
		b = fmt.Appendf(b, "%s: %s\r\n", name, values[i])
	}
	return append(b, "\r\n"...)
}

// The escapes are implemented a second time, from wire.md alone, because the document
// must be enough for a peer in another language.
func TestHeaderValuesAreEscapedAsDocumented(t *testing.T) {
	var vectors []struct {
		Value  string `json:"value"`
		Header string `json:"header"`
		Only   string `json:"only"`
		Error  string `json:"error"`
	}
	decode(t, read(t, filepath.Join(wireDir, "header-values.json")), &vectors)
	for _, v := range vectors {
		got, ok := percentDecoded(v.Header)
		if ok != (v.Error == "") || got != v.Value {
			t.Errorf("%q decodes to %q, %v; want %q %s", v.Header, got, ok, v.Value, v.Error)
		}
		if got := percentEncoded(v.Value); v.Only == "" && v.Error == "" && got != v.Header {
			t.Errorf("%q encodes to %q; want %q", v.Value, got, v.Header)
		}
	}
}

func percentEncoded(s string) string {
	var b strings.Builder
	for i, c := range []byte(s) {
		blankEnd := c == ' ' && (i == 0 || i == len(s)-1)
		if c < ' ' || c > '~' || c == '%' || blankEnd {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

func percentDecoded(s string) (string, bool) {
	first, rest, found := strings.Cut(s, "%")
	if !found {
		return s, true
	}
	if len(rest) < 2 {
		return "", false
	}
	c, err := hex.DecodeString(rest[:2])
	tail, ok := percentDecoded(rest[2:])
	if err != nil || !ok {
		return "", false
	}
	return first + string(c) + tail, true
}

func TestTokensAreEscapedAsDocumented(t *testing.T) {
	var vectors []struct {
		ID    string `json:"id"`
		Token string `json:"token"`
		Error string `json:"error"`
	}
	decode(t, read(t, filepath.Join(wireDir, "tokens.json")), &vectors)
	for _, v := range vectors {
		got := token(v.ID)
		if fits := got != "" && len(got) <= schema.MaxToken; fits != (v.Error == "") || fits && got != v.Token {
			t.Errorf("%q becomes %q; want %q %s", v.ID, got, v.Token, v.Error)
		}
	}
}

func token(id string) string {
	if id == "_" {
		return "=5F"
	}
	var b strings.Builder
	for _, c := range []byte(id) {
		if c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_' || c == '-' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "=%02X", c)
		}
	}
	return b.String()
}

// A peer must not confuse unknown words with known ones.
func TestUnknownWordsStayUnknown(t *testing.T) {
	var reply schema.BatchReply
	decode(t, []byte(`{"worker":"w1","status":"paused","outcomes":[{"hook":0,"kind":"skipped"}]}`), &reply)
	if reply.Status == schema.StatusOK || reply.Outcomes[0].Kind == schema.OK || reply.Outcomes[0].Kind == "" {
		t.Errorf("an unknown status or kind reads as ok: %+v", reply)
	}
	if schema.EventType("PreCompact").Known() || schema.Strategy("sidebar").Known() {
		t.Error("an unknown event or strategy counts as known")
	}
}
