package webhook

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers/runnertest"
)

// respond writes a response.
func respond(status int, header http.Header, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		maps.Copy(w.Header(), header)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func typed(contentType string) http.Header { return http.Header{"Content-Type": {contentType}} }

// untyped keeps the server from guessing a content type.
func untyped() http.Header { return http.Header{"Content-Type": nil} }

func TestAnswersOfServers(t *testing.T) {
	const ask = `{"decision":"ask","reason":"sure?"}`
	json := typed("application/json")
	for name, c := range map[string]struct {
		status int
		header http.Header
		body   string
		event  schema.EventType
		want   schema.Result
		err    string
	}{
		"JSON with 200 is the answer":                  {status: 200, header: json, body: ask, want: schema.Asked("sure?")},
		"JSON with 201 is the answer":                  {status: 201, header: json, body: ask, want: schema.Asked("sure?")},
		"JSON may say its charset":                     {status: 200, header: typed("Application/JSON; charset=utf-8"), body: ask, want: schema.Asked("sure?")},
		"JSON may be of a kind":                        {status: 200, header: typed("application/vnd.policy+json"), body: ask, want: schema.Asked("sure?")},
		"JSON need not be labelled":                    {status: 200, header: untyped(), body: ask, want: schema.Asked("sure?")},
		"MassGen's form is understood":                 {status: 200, header: json, body: `{"allowed":false,"metadata":{"reason":"no"}}`, want: schema.Denied("no")},
		"an empty object is no opinion":                {status: 200, header: json, body: `{}`},
		"204 is no opinion":                            {status: 204},
		"200 with nothing is an error":                 {status: 200, header: json, err: "status 200 OK and an empty body; answer with one JSON object, {} for no opinion, or with 204"},
		"200 with blanks is an error":                  {status: 200, header: json, body: " \n", err: "and an empty body"},
		"202 with nothing is an error":                 {status: 202, err: "status 202 Accepted and an empty body"},
		"JSON with another label is an error":          {status: 200, header: typed("text/plain"), body: ask, err: `the Content-Type "text/plain"; set application/json`},
		"a web page is an error":                       {status: 200, header: typed("text/html"), body: "<html>", err: `"text/html"`},
		"text is an error":                             {status: 200, header: json, body: "fine", err: "the answer is"},
		"a list is an error":                           {status: 200, header: json, body: "[]", err: "the answer is a list"},
		"half an answer is an error":                   {status: 200, header: json, body: `{"decision":`, err: "not valid JSON"},
		"two answers are an error":                     {status: 200, header: json, body: "{}{}", err: "not valid JSON"},
		"a compressed answer is an error":              {status: 200, header: http.Header{"Content-Encoding": {"gzip"}, "Content-Type": {"application/json"}}, body: ask, err: `the Content-Encoding "gzip"`},
		"the encoding identity counts":                 {status: 200, header: http.Header{"Content-Encoding": {"identity"}, "Content-Type": {"application/json"}}, body: ask, want: schema.Asked("sure?")},
		"422 blocks with the text":                     {status: 422, header: typed("text/plain"), body: " no way\nat all \n", want: schema.Denied("no way\nat all")},
		"422 blocks with the reason in JSON":           {status: 422, header: json, body: `{"reason":"no way"}`, want: schema.Denied("no way")},
		"422 blocks with any decision in JSON":         {status: 422, header: json, body: `{"decision":"allow","reason":"no way","updated_input":{}}`, want: schema.Denied("no way")},
		"422 blocks with a reason of Claude Code":      {status: 422, header: json, body: `{"hookSpecificOutput":{"permissionDecisionReason":"no way"}}`, want: schema.Denied("no way")},
		"422 blocks with a reason beside an error":     {status: 422, header: json, body: `{"error":"policy","reason":"no way"}`, want: schema.Denied("no way")},
		"422 with nothing names the hook":              {status: 422, want: schema.Denied(`blocked by the hook "test", which gave no reason`)},
		"422 with JSON without reason names the hook":  {status: 422, header: json, body: `{"detail":[]}`, want: schema.Denied(`blocked by the hook "test", which gave no reason`)},
		"422 that is compressed names the hook":        {status: 422, header: http.Header{"Content-Encoding": {"br"}}, body: "no", want: schema.Denied(`blocked by the hook "test", which gave no reason`)},
		"422 blocks with the beginning of a long text": {status: 422, header: typed("text/plain"), body: strings.Repeat("x", schema.MaxResult+2), want: schema.Denied(strings.Repeat("x", schema.MaxReason) + "…")},
		"422 at the final response asks for more":      {status: 422, header: typed("text/plain"), body: "run the tests", event: schema.BeforeFinalResponse, want: schema.Result{Decision: schema.Retry, Reason: "run the tests"}},
		"422 where nothing can be blocked is a deny, which the fold refuses": {
			status: 422, body: "no", event: schema.SessionEnd, want: schema.Denied("no")},
		"400 is an error with its first line":         {status: 400, body: "\nno such field\nstack", err: "the status 400 Bad Request: no such field"},
		"403 is an error and not a deny":              {status: 403, header: json, body: `{"decision":"deny"}`, err: `the status 403 Forbidden: {"decision":"deny"}`},
		"404 without words is an error":               {status: 404, err: "the status 404 Not Found"},
		"500 is an error with any body":               {status: 500, header: json, body: ask, err: "the status 500 Internal Server Error"},
		"503 with a long text is an error":            {status: 503, body: strings.Repeat("x", 2<<20), err: "the status 503 Service Unavailable: " + strings.Repeat("x", maxLine) + "…"},
		"an error's text is reduced to a line":        {status: 500, body: "a\x1b[31mb\u202ec\xff", err: "Error: a\uFFFD[31mb\uFFFDc\uFFFD"},
		"an error's compressed text is not shown":     {status: 500, header: http.Header{"Content-Encoding": {"gzip"}}, body: "\x1f\x8b", err: "the status 500 Internal Server Error"},
		"an unknown status is an error":               {status: 599, err: "the status 599"},
		"a redirection is an error with its host":     {status: 307, header: http.Header{"Location": {"https://other.example/hook?token=abc"}}, err: "the status 307 Temporary Redirect, which leads to other.example; the worker follows no redirections"},
		"a redirection to nowhere is an error":        {status: 302, err: "the status 302 Found, which leads nowhere"},
		"a redirection may have more than one way":    {status: 300, header: json, body: ask, err: "the status 300 Multiple Choices"},
		"304 is an error":                             {status: 304, err: "the status 304 Not Modified"},
		"an answer with too many headers is an error": {status: 200, header: http.Header{"X-Much": {strings.Repeat("x", maxHeaders)}}, body: ask, err: "headers exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			e := runnertest.Event("Bash")
			if c.event != "" {
				e.HookType = c.event
			}
			url := serve(t, respond(c.status, c.header, c.body))
			got, err := load(t, quiet(), hookOf(url+"/hook")).Handle(t.Context(), e)
			if c.err != "" {
				expectError(t, err, url+"/hook", c.err)
			} else if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("the answer differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestARedirectionIsNotFollowed(t *testing.T) {
	for _, code := range []int{301, 302, 303, 307, 308} {
		other := serve(t, func(http.ResponseWriter, *http.Request) { t.Errorf("%d was followed", code) })
		_, err := handle(t, serve(t, respond(code, http.Header{"Location": {other}}, "")))
		expectError(t, err, strings.TrimPrefix(other, "http://"), strconv.Itoa(code))
	}
}

func TestTheSizeOfAnswersIsLimited(t *testing.T) {
	const answer = `{"decision":"allow"}`
	exact := answer + strings.Repeat(" ", schema.MaxResult-len(answer))
	got, err := handle(t, serve(t, respond(200, typed("application/json"), exact)))
	if err != nil || got.Decision != schema.Allow {
		t.Errorf("the answer is %+v, error %v", got, err)
	}
	_, err = handle(t, serve(t, respond(200, typed("application/json"), exact+" ")))
	expectError(t, err, "more than 1048576 bytes")
}

func TestInvalidHTTPIsAnErrorOfOneLine(t *testing.T) {
	for name, c := range map[string]struct{ says, want string }{
		"another protocol": {"SSH-2.0-OpenSSH\r\n", "malformed HTTP"},
		"a long line":      {"HTTP/1.1 200 " + strings.Repeat("x", 40<<10) + "\x00\r\nbad header\r\n\r\n", "malformed MIME header"},
		"half an answer":   {"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", "broke off its answer: unexpected EOF"},
		"half a chunk":     {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n{", "broke off its answer: unexpected EOF"},
		"two lengths":      {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{} ", "Content-Length"},
		"another language": {"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nhello", "the status 101 Switching Protocols, which is not an answer"},
	} {
		t.Run(name, func(t *testing.T) {
			url := listen(t, func(conn net.Conn) {
				defer conn.Close()
				if req, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
					_, _ = io.Copy(io.Discard, req.Body)
				}
				_, _ = io.WriteString(conn, c.says)
				if strings.Contains(c.says, " 101 ") {
					_, _ = io.Copy(io.Discard, conn) // until the other side closes
				}
			})
			_, err := handle(t, url)
			expectError(t, err, url, c.want)
			if err != nil && (len(err.Error()) > 2*maxLine || strings.ContainsAny(err.Error(), "\r\n\x00")) {
				t.Errorf("the error is %q", err)
			}
		})
	}
}

func TestASlowAnswerEndsWithItsCall(t *testing.T) {
	why := errors.New("time is up")
	for name, begins := range map[string]bool{"before it begins": false, "in its midst": true} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			url := serve(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				if begins {
					reply(w, `{"decision":`)
					_ = http.NewResponseController(w).Flush()
				}
				cancel(why)
				<-r.Context().Done()
			})
			_, err := load(t, quiet(), hookOf(url)).Handle(ctx, runnertest.Event("Bash"))
			expectError(t, err, url+" did not answer before the call ended: time is up")
			if !errors.Is(err, why) {
				t.Errorf("the error does not wrap what ended the call: %v", err)
			}
		})
	}
}

func TestARefusalBeforeTheEventIsReadCounts(t *testing.T) {
	done := make(chan struct{})
	url := listen(t, func(conn net.Conn) {
		defer conn.Close()
		if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
			_, _ = io.WriteString(conn, "HTTP/1.1 422 No\r\nContent-Length: 6\r\n\r\nno way")
		}
		<-done
	})
	defer close(done)
	e := runnertest.Event("Bash")
	e.Prompt = strings.Repeat("x", 7<<20) // more than the network buffers
	got, err := load(t, quiet(), hookOf(url)).Handle(t.Context(), e)
	if diff := cmp.Diff(schema.Denied("no way"), got); err != nil || diff != "" {
		t.Errorf("error %v; the answer differs (-want +got):\n%s", err, diff)
	}
}

func TestARefusalWithAnEndlessReasonCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		body, server := io.Pipe()
		go func() { _, _ = io.WriteString(server, "no way") }()
		h := &handler{hook: "test", tidy: newTidy(nil)}
		got, err := h.judge(ctx, schema.PreToolUse, &http.Response{StatusCode: http.StatusUnprocessableEntity, Body: body})
		if diff := cmp.Diff(schema.Denied("no way"), got); err != nil || diff != "" {
			t.Errorf("error %v; the answer differs (-want +got):\n%s", err, diff)
		}
		if ctx.Err() != nil {
			t.Error("it came when the call's time was over")
		}
	})
}

func TestHeadersAreLimitedOverHTTP2(t *testing.T) {
	url, dir := serveTLS(t, respond(200, http.Header{"X-Much": {strings.Repeat("x", 2*maxHeaders)}}, "{}"), nil)
	hook := hookOf(url)
	hook.TLS.CA = "ca.pem"
	_, err := load(t, quiet(), hook, dir).Handle(t.Context(), runnertest.Event("Bash"))
	expectError(t, err, url+" could not be asked")
}

func FuzzJudge(f *testing.F) {
	f.Add(200, "application/json", "", []byte(`{"decision":"deny"}`))
	f.Add(204, "", "", []byte(nil))
	f.Add(422, "text/plain", "", []byte("no\x00\xff"))
	f.Add(422, "application/json", "gzip", []byte(`{"reason":"secret-secret"}`))
	f.Add(302, "text/html\n", "", []byte("<"))
	f.Add(500, "", "br", []byte("\u202esecret-secret"))
	h := &handler{hook: "test", name: "https://policy.example", tidy: newTidy([]string{"secret-secret"})}
	f.Fuzz(func(t *testing.T, status int, contentType, encoding string, body []byte) {
		resp := &http.Response{
			StatusCode: status, Body: io.NopCloser(bytes.NewReader(body)),
			Header: http.Header{"Content-Type": {contentType}, "Content-Encoding": {encoding}, "Location": {contentType}},
		}
		got, err := h.judge(t.Context(), schema.PreToolUse, resp)
		switch {
		case err != nil && !cmp.Equal(got, schema.Result{}):
			t.Errorf("an error with an answer: %+v, %v", got, err)
		case status == 204 && (err != nil || !cmp.Equal(got, schema.Result{})):
			t.Errorf("204 is %+v, %v", got, err)
		case status == 422 && (err != nil || got.Decision != schema.Deny || got.Reason == "" || len(got.Reason) > schema.MaxReason+len("…")):
			t.Errorf("422 is %+v, %v", got, err)
		case status/100 != 2 && status != 422 && err == nil:
			t.Errorf("%d is %+v", status, got)
		case status/100 == 2 && status != 204 && err == nil && body[bytes.IndexFunc(body, func(c rune) bool { return !strings.ContainsRune(" \t\r\n", c) })] != '{':
			t.Errorf("%q is %+v", body, got)
		}
		if err != nil && status/100 != 2 && (strings.Contains(err.Error(), "secret-secret") || strings.ContainsAny(err.Error(), "\n\r\x00\u202e") || !utf8.ValidString(err.Error())) {
			t.Errorf("the error is %q", err)
		}
	})
}
