package mcp

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// The methods that the proxy acts on.
const (
	methodCall       = "tools/call"
	methodInitialize = "initialize"
	methodCancelled  = "notifications/cancelled"
	methodTaskResult = "tasks/result"
	methodElicit     = "elicitation/create"
)

// The error codes of JSON-RPC that the proxy answers with.
const (
	codeParse    = -32700
	codeRequest  = -32600
	codeInternal = -32603
)

type message struct {
	object
	id        jsontext.Value // nil in a notification
	method    string         // empty in a response
	ambiguity error          // why readers could read a tools/call differently; nil if they cannot
}

// readMessage reads one message. After an error, readers could take it for any message.
func readMessage(raw []byte) (message, error) {
	o, err := readObject(raw)
	m := message{object: o}
	if err != nil {
		return m, err
	}
	m.id, m.method = o.get("id"), o.text("method")
	if o.get("method") != nil && m.method == "" {
		return m, errors.New("its method is not a string")
	}
	for _, e := range o.members {
		if similar(e.name, "method") && text(o.value(e)) == methodCall {
			m.method = methodCall // for some readers
		}
	}
	if m.method == methodCall {
		m.ambiguity = m.checkCall()
	}
	return m, nil
}

// checkCall returns an error if readers could read a tools/call differently.
func (m *message) checkCall() error {
	if err := m.checkUnique("id", "method", "params"); err != nil {
		return err
	}
	if m.get("params") == nil {
		return errors.New("it has no params")
	}
	params, err := readObject(m.get("params"))
	if err == nil {
		err = params.checkUnique("name", "arguments", "_meta", "task", "inputResponses", "requestState")
	}
	if err != nil {
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

func (m *message) isResponse() bool {
	return m.id != nil && (m.get("result") != nil || m.get("error") != nil)
}

// isError reports whether a request failed. Some servers send "error": null with a result.
func (m *message) isError() bool {
	v := m.get("error")
	return v != nil && v.Kind() != 'n'
}

// checkAnswer returns an error if readers could find another answer in a message than the hooks see.
func (m *message) checkAnswer() error {
	if err := m.checkUnique("id", "method", "result", "error"); err != nil || !m.isResponse() {
		return err
	}
	switch {
	case m.get("method") != nil:
		return errors.New("it has both an answer and a method")
	case m.isError() && m.get("result") != nil:
		return errors.New("it has both a result and an error")
	}
	result := m.child("result")
	if err := result.checkUnique("content", "structuredContent", "isError", "resultType", "task"); err != nil {
		return fmt.Errorf("its result: %w", err)
	}
	return nil
}

// exactKey returns the same text for all spellings of an id.
func exactKey(id jsontext.Value) string {
	switch id.Kind() {
	case '"':
		return "s" + text(id)
	case '0':
		return numberKey(string(id))
	}
	return "x" + string(id)
}

// looseKey returns the same text for all ids that some client takes for one, as it converts them to numbers.
func looseKey(id jsontext.Value) string {
	if id.Kind() != '"' {
		return exactKey(id)
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
	return exactKey(id)
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

func resultResponse(id jsontext.Value, result []byte) []byte { return response(id, "result", result) }

// errorResponse returns the response to a request that failed, or to an unreadable message without an id.
func errorResponse(id jsontext.Value, code int, reason string) []byte {
	data, err := schema.Marshal(struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}{code, reason})
	if err != nil {
		data = []byte(`{"code":-32603,"message":"agentshim could not encode the error"}`)
	}
	return response(id, "error", data)
}

func response(id jsontext.Value, name string, value []byte) []byte {
	if id == nil {
		id = jsontext.Value("null")
	}
	out := append([]byte(`{"jsonrpc":"2.0","id":`), id...)
	out = append(out, `,"`+name+`":`...)
	return append(append(out, value...), '}')
}
