package llm

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/bus/agent/render"
	"github.com/hookfabric/hookfabric/schema"
)

// Call asks the model for the next message of a conversation. Its error contains the API's
// error text and never the key. It wraps an [*APIError] if the API answered with an error. It
// is [render.ErrRefused] or [render.ErrCut] if the answer contains no message.
func (c *Client) Call(ctx context.Context, messages []schema.Message, tools []render.Tool) (schema.Message, error) {
	request, err := render.Conversation(c.opt.Format, messages, tools)
	if err != nil {
		return schema.Message{}, err
	}
	body, err := c.body(request)
	if err != nil {
		return schema.Message{}, err
	}
	response, err := c.ask(ctx, body)
	if err != nil {
		return schema.Message{}, fmt.Errorf("calling the model %q: %w", c.opt.Model, err)
	}
	return render.Read(c.opt.Format, response)
}

// body encodes a whole request.
func (c *Client) body(r render.Request) ([]byte, error) {
	tokens := c.opt.MaxTokens
	switch c.opt.Format {
	case render.Anthropic:
		if tokens <= 0 {
			tokens = defaultTokens
		}
		return schema.Marshal(struct {
			Model     string `json:"model"`
			MaxTokens int    `json:"max_tokens"`
			render.Request
		}{c.opt.Model, tokens, r})
	case render.Gemini:
		var in struct {
			render.Request
			Config struct {
				MaxTokens int `json:"maxOutputTokens,omitzero"`
			} `json:"generationConfig,omitzero"`
		}
		in.Request, in.Config.MaxTokens = r, max(tokens, 0)
		return schema.Marshal(in)
	}
	in := struct {
		Model string `json:"model"`
		// OpenAI's newer models accept only the first member, and compatible APIs only
		// the second.
		Completion int `json:"max_completion_tokens,omitzero"`
		MaxTokens  int `json:"max_tokens,omitzero"`
		render.Request
	}{Model: c.opt.Model, Request: r}
	if tokens > 0 && strings.HasPrefix(c.at, vendor(render.OpenAI)) {
		in.Completion = tokens
	} else if tokens > 0 {
		in.MaxTokens = tokens
	}
	return schema.Marshal(in)
}

// An APIError is an error answer of the API.
type APIError struct {
	// Status is the HTTP status.
	Status int
	// Message is the API's error text, shortened; it may be empty.
	Message string
}

// Error returns the status and the message.
func (e *APIError) Error() string {
	text := fmt.Sprintf("the API answered %d %s", e.Status, http.StatusText(e.Status))
	if e.Message != "" {
		text += ": " + e.Message
	}
	return text
}

// isTemporary reports whether a repeated call may succeed.
func (e *APIError) isTemporary() bool {
	return e.Status == http.StatusRequestTimeout || e.Status == http.StatusTooManyRequests || e.Status >= http.StatusInternalServerError && e.Status != http.StatusNotImplemented
}

// maxMessage limits the text of an API's error, in bytes.
const maxMessage = 1000

// errAttempt is the cause when an attempt takes too long.
var errAttempt = errors.New("the model did not answer in time")

// attempt makes one request. The header has the pause that the API asks for.
func (c *Client) attempt(ctx context.Context, body []byte) (jsontext.Value, http.Header, error) {
	key, err := c.key(ctx)
	if err != nil {
		return nil, nil, err
	}
	within, cancel := context.WithTimeoutCause(ctx, c.opt.Timeout, errAttempt)
	defer cancel()
	r, err := http.NewRequestWithContext(within, http.MethodPost, c.at, bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	c.authorize(r.Header, key)
	answer, err := c.http.Do(r)
	if err != nil {
		return nil, nil, lost(within, err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, nil, lost(within, err)
	case len(data) > maxAnswer:
		return nil, nil, fmt.Errorf("the API's answer is larger than %d bytes", maxAnswer)
	case answer.StatusCode == http.StatusOK:
		return data, nil, nil
	}
	text := strings.TrimSpace(render.ErrorText(data))
	if key != "" {
		text = strings.ReplaceAll(text, key, "[the key]")
	}
	if len(text) > maxMessage {
		text = strings.ToValidUTF8(text[:maxMessage], "") + "…"
	}
	return nil, answer.Header, &APIError{Status: answer.StatusCode, Message: text}
}

// A lostError is an error of the connection to the API. It counts as temporary.
type lostError struct{ err error }

func (e *lostError) Error() string { return e.err.Error() }
func (e *lostError) Unwrap() error { return e.err }

// lost returns why there is no answer: the cause of ctx's end, if it ended.
func lost(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return &lostError{context.Cause(ctx)}
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err // without the address, which the caller knows
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return err
	}
	return &lostError{err}
}

const (
	// firstPause is about the length of the first pause. Each pause is twice as long as
	// the one before, up to longestPause.
	firstPause   = 500 * time.Millisecond
	longestPause = 30 * time.Second
	// longestRequestedPause is the longest pause that the client makes if an API asks for it. A
	// longer one is an error.
	longestRequestedPause = 2 * time.Minute
)

// ask makes a request until it succeeds, or until a repetition cannot help.
func (c *Client) ask(ctx context.Context, body []byte) (jsontext.Value, error) {
	for n := 0; ; n++ {
		response, header, err := c.attempt(ctx, body)
		if err == nil {
			return response, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if !isTemporary(err) {
			return nil, err
		}
		if n >= c.opt.Retries {
			return nil, fmt.Errorf("%w (after %d attempts)", err, n+1)
		}
		d, wished := requestedPause(header, time.Now())
		if !wished {
			d = pause(n)
		}
		if wished && d > longestRequestedPause {
			return nil, fmt.Errorf("%w (the API asks to wait %s, which is too long)", err, d)
		}
		if end, ok := ctx.Deadline(); ok && time.Until(end) <= d {
			return nil, fmt.Errorf("%w (after %d attempts; there is no time for another)", err, n+1)
		}
		if !sleep(ctx, d) {
			return nil, context.Cause(ctx)
		}
	}
}

// isTemporary reports whether a repeated call may succeed.
func isTemporary(err error) bool {
	if e, ok := errors.AsType[*APIError](err); ok {
		return e.isTemporary()
	}
	_, ok := errors.AsType[*lostError](err)
	return ok
}

// pause returns how long to wait after attempt n. It is a random time between half and
// all of the interval, so that clients that failed together do not retry together.
func pause(n int) time.Duration {
	d := min(firstPause<<min(n, 10), longestPause)
	return d/2 + rand.N(d/2)
}

// requestedPause returns the pause that an API asks for, in seconds or as a date.
func requestedPause(h http.Header, now time.Time) (time.Duration, bool) {
	text := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(text, 64); err == nil && s >= 0 {
		return time.Duration(min(s, 1e6) * float64(time.Second)), true
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(at.Sub(now), 0), true
	}
	return 0, false
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
