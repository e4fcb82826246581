package mcp

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// The methods that are more than bytes to a proxy.
const (
	methodCall       = "tools/call"
	methodInitialize = "initialize"
	methodCancelled  = "notifications/cancelled"
	methodTaskResult = "tasks/result"
	methodElicit     = "elicitation/create"
)

// A message is what must be known of one JSON-RPC message.
type message struct {
	object
	id     jsontext.Value // nil: none
	method string         // empty: a response
	// unclear is why a request could be read as another one than it seems; nil: it cannot.
	unclear error
}

// readMessage reads one message. After an error it may be anything.
func readMessage(raw []byte) (message, error) {
	o, err := readObject(raw)
	m := message{object: o}
	if err != nil {
		return m, err
	}
	m.id, m.method = o.get("id"), o.text("method")
	if v := o.get("method"); v != nil && m.method == "" {
		return m, errors.New("its method is not a string")
	}
	for _, e := range o.members {
		if alike(e.name, "method") && text(o.raw[e.at:e.end]) == methodCall {
			m.method = methodCall // to some reader
		}
	}
	if m.method == methodCall {
		m.unclear = m.callIsClear()
	}
	return m, nil
}

// callIsClear says why a tools/call could be read as another one.
func (m *message) callIsClear() error {
	if err := m.clear("id", "method", "params"); err != nil {
		return err
	}
	if m.object.get("params") == nil {
		return errors.New("it has no params")
	}
	params, err := readObject(m.get("params"))
	if err != nil {
		return fmt.Errorf("its params: %w", err)
	}
	if err := params.clear("name", "arguments", "_meta", "task", "inputResponses", "requestState"); err != nil {
		return fmt.Errorf("its params: %w", err)
	}
	name := params.get("name")
	if name.Kind() != '"' || !utf8.Valid(name) || params.text("name") == "" {
		return errors.New("its params name no tool")
	}
	if args := params.get("arguments"); args != nil {
		if k := args.Kind(); k != '{' && k != 'n' {
			return fmt.Errorf("its arguments are %s, not a JSON object", schema.KindName(k))
		}
		if !args.IsValid(jsontext.AllowInvalidUTF8(true)) {
			return errors.New("its arguments have a name twice")
		}
	}
	return nil
}

// response reports whether it answers a request.
func (m *message) response() bool {
	return m.id != nil && (m.get("result") != nil || m.get("error") != nil)
}

// faulted reports whether it says that a request could not be done. Some servers
// say with a result that there was no error.
func (m *message) faulted() bool {
	v := m.get("error")
	return v != nil && v.Kind() != 'n'
}

// answerIsClear says why what a server says could be read as something else than
// hooks would see of it.
func (m *message) answerIsClear() error {
	if err := m.clear("id", "method", "result", "error"); err != nil || !m.response() {
		return err
	}
	switch {
	case m.get("method") != nil:
		return errors.New("it has both an answer and a method")
	case m.faulted() && m.get("result") != nil:
		return errors.New("it has both a result and an error")
	}
	result := m.inner("result")
	if err := result.clear("content", "structuredContent", "isError", "resultType", "task"); err != nil {
		return fmt.Errorf("its result: %w", err)
	}
	return nil
}

// key is the same for all ways to write one id.
func (m *message) key() string { return idKey(m.id) }

// place is the same for all ids that some client takes for one: there are those
// that make a number of the id of an answer, whatever it was.
func place(id jsontext.Value) string {
	if id.Kind() != '"' {
		return idKey(id)
	}
	s := strings.ReplaceAll(strings.TrimSpace(text(id)), "_", "")
	if n, err := strconv.ParseInt(s, 0, 64); err == nil && strings.ContainsAny(s, "xXoObB") {
		return "n" + strconv.FormatInt(n, 10)
	}
	if s == "" {
		s = "0"
	}
	if _, err := strconv.ParseFloat(s, 64); err == nil {
		return numberKey(s)
	}
	return idKey(id)
}

func idKey(id jsontext.Value) string {
	switch id.Kind() {
	case '"':
		return "s" + text(id)
	case '0':
		return numberKey(string(id))
	}
	return "x" + string(id)
}

func numberKey(s string) string {
	if i, err := strconv.ParseInt(s, 10, 64); err == nil {
		return "n" + strconv.FormatInt(i, 10)
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return "n" + s
	}
	if i := int64(f); float64(i) == f {
		return "n" + strconv.FormatInt(i, 10)
	}
	return "n" + strconv.FormatFloat(f, 'g', -1, 64)
}

// readMessages reads what stands on one line or in one body: a message, or
// several in a list, as a protocol of 2025-03-26 has them.
func readMessages(raw []byte) (all []message, batch bool, err error) {
	raw = bytes.TrimRight(raw, "\r\n")
	if bytes.IndexByte(raw, '\r') >= 0 {
		return nil, false, errors.New("it has a carriage return in the middle, which some readers take for the end of a line")
	}
	if jsontext.Value(raw).Kind() != '[' {
		m, err := readMessage(raw)
		return []message{m}, false, err
	}
	parts, err := readList(raw)
	if err != nil {
		return nil, true, err
	}
	for _, part := range parts {
		m, err := readMessage(part)
		all = append(all, m)
		if err != nil {
			return all, true, err
		}
	}
	return all, true, nil
}

// response is a message that answers a request.
func response(id jsontext.Value, name string, value []byte) []byte {
	if id == nil {
		id = jsontext.Value("null")
	}
	out := append([]byte(`{"jsonrpc":"2.0","id":`), id...)
	out = append(out, `,"`+name+`":`...)
	return append(append(out, value...), '}')
}

// fault is a JSON-RPC error.
func fault(code int, text string) []byte {
	data, err := schema.Marshal(struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}{code, text})
	if err != nil {
		return []byte(`{"code":-32603,"message":"agentshim could not encode the error"}`)
	}
	return data
}
