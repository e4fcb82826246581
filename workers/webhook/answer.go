package webhook

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// maxLine limits the text of a server in an error.
const maxLine = 256

// judge turns a server's response into the hook's answer.
func (h *handler) judge(ctx context.Context, t schema.EventType, resp *http.Response) (schema.Result, error) {
	switch code := resp.StatusCode; {
	case code == http.StatusNoContent:
		return schema.Result{}, nil
	case code == http.StatusUnprocessableEntity:
		return h.blocked(ctx, t, resp), nil
	case code/100 == 2:
		return h.answer(ctx, t, resp)
	case code/100 == 3:
		return schema.Result{}, fmt.Errorf("%s answered with %s, which leads %s; the worker follows no redirections: write the server's final URL as the handler", h.name, status(code), h.leads(resp))
	case code/100 == 1:
		return schema.Result{}, fmt.Errorf("%s answered with %s, which is not an answer to a hook", h.name, status(code))
	default:
		return schema.Result{}, fmt.Errorf("%s answered with %s%s", h.name, status(code), h.words(resp))
	}
}

// answer reads a response with an answer.
func (h *handler) answer(ctx context.Context, t schema.EventType, resp *http.Response) (schema.Result, error) {
	body, err := read(resp)
	switch {
	case err != nil:
		return schema.Result{}, h.lost(ctx, "broke off its answer", err)
	case len(body) > schema.MaxResult:
		return schema.Result{}, fmt.Errorf("%s answered with more than %d bytes, the limit of an answer", h.name, schema.MaxResult)
	case isEncoded(resp):
		return schema.Result{}, fmt.Errorf("%s answered with the Content-Encoding %q, which the worker did not accept; answer in plain JSON", h.name, h.tidy.line(resp.Header.Get("Content-Encoding")))
	case len(bytes.TrimSpace(body)) == 0:
		return schema.Result{}, fmt.Errorf("%s answered with %s and an empty body; answer with one JSON object, {} for no opinion, or with 204", h.name, status(resp.StatusCode))
	case !isJSON(resp):
		return schema.Result{}, fmt.Errorf("%s answered with the Content-Type %q; set application/json, and answer with one JSON object", h.name, h.tidy.line(resp.Header.Get("Content-Type")))
	}
	res, err := schema.DecodeResult(t, body)
	if err != nil {
		return schema.Result{}, fmt.Errorf("%s: %s", h.name, h.tidy.line(err.Error()))
	}
	res.Reason = h.tidy.secrets.Replace(res.Reason)
	for i, e := range res.HookErrors {
		res.HookErrors[i] = h.tidy.secrets.Replace(e)
	}
	return res, nil
}

// blocked returns the refusal of a server. It stands even if the reason is malformed or
// late; the server has half of the remaining time to send the reason.
func (h *handler) blocked(ctx context.Context, t schema.EventType, resp *http.Response) schema.Result {
	if until, ok := ctx.Deadline(); ok {
		defer time.AfterFunc(time.Until(until)/2, func() { _ = resp.Body.Close() }).Stop()
	}
	reason := ""
	if body, _ := read(resp); !isEncoded(resp) {
		if refusal, err := schema.DecodeResult(t, body); err == nil {
			reason = h.tidy.text(refusal.Reason)
		} else if !isObject(body) {
			reason = h.tidy.text(string(body))
		} else {
			reason = h.tidy.text(reasonIn(body))
		}
	}
	if reason == "" {
		reason = fmt.Sprintf("blocked by the hook %q, which gave no reason", h.hook)
	}
	res := schema.Blocked(t, reason)
	return *res.Trimmed()
}

// reasonIn returns the reason in an object that is not a valid answer.
func reasonIn(body []byte) string {
	var content struct {
		Reason string `json:"reason"`
	}
	_ = schema.Unmarshal(body, &content) // without a reason if it fails
	return content.Reason
}

// isObject reports whether body is a JSON object, which is not a sentence for people.
func isObject(body []byte) bool {
	v := jsontext.Value(body)
	return v.Kind() == '{' && v.IsValid()
}

// leads returns the host of a redirection.
func (h *handler) leads(resp *http.Response) string {
	to, err := resp.Location()
	if err != nil || to.Host == "" {
		return "nowhere"
	}
	return "to " + h.tidy.line(to.Host)
}

// words returns the first line of a server's text, as an addition to a sentence.
func (h *handler) words(resp *http.Response) string {
	body, _ := read(resp)
	line := h.tidy.line(string(body))
	if line == "" || isEncoded(resp) {
		return ""
	}
	return ": " + line
}

// read reads a body up to the limit and one byte more. The rest is not read, and the
// connection is not reused.
func read(resp *http.Response) ([]byte, error) {
	return io.ReadAll(io.LimitReader(resp.Body, schema.MaxResult+1))
}

// isEncoded reports whether a body is compressed.
func isEncoded(resp *http.Response) bool {
	as := resp.Header.Get("Content-Encoding")
	return as != "" && !strings.EqualFold(as, "identity")
}

// isJSON reports whether a body is labelled as JSON, or not labelled.
func isJSON(resp *http.Response) bool {
	as := resp.Header.Get("Content-Type")
	if as == "" {
		return true
	}
	as, _, _ = strings.Cut(as, ";")
	as = strings.ToLower(strings.TrimSpace(as))
	return as == "application/json" || strings.HasSuffix(as, "+json")
}

// status returns a status with its standard text, because servers may send any text.
func status(code int) string {
	return strings.TrimSpace(fmt.Sprintf("the status %d %s", code, http.StatusText(code)))
}

// tidy makes a server's text safe to show.
type tidy struct{ secrets *strings.Replacer }

// newTidy removes secrets from texts. It replaces longer secrets first, because one may
// be the beginning of another.
func newTidy(secrets []string) tidy {
	secrets = slices.SortedFunc(slices.Values(secrets), func(a, b string) int { return len(b) - len(a) })
	pairs := make([]string, 0, 2*len(secrets))
	for _, s := range secrets {
		if s = strings.TrimSpace(s); s != "" {
			pairs = append(pairs, s, "(secret)")
		}
	}
	return tidy{strings.NewReplacer(pairs...)}
}

// text returns s without secrets.
func (t tidy) text(s string) string {
	return strings.TrimSpace(strings.ToValidUTF8(t.secrets.Replace(s), "\uFFFD"))
}

// line returns the first line of s, without secrets and unprintable characters.
func (t tidy) line(s string) string {
	s, _, _ = strings.Cut(t.text(s), "\n")
	if len(s) > maxLine {
		s = strings.ToValidUTF8(s[:maxLine], "") + "…"
	}
	return strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return '\uFFFD'
		}
		return c
	}, strings.TrimSpace(s))
}
