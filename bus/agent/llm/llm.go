// Package llm calls language models over HTTP: it sends a conversation and returns the model's
// message, for each API of package render. It is for loops without an SDK. It does not stream.
//
// The client retries temporary errors within the limits of its options. It sends the key only
// in a header, and only over TLS or to this machine.
//
// # Concurrency
//
// Several goroutines may use a [Client].
//
// # Usage
//
//	model, err := llm.New(llm.Options{
//		Format: render.Anthropic, Model: "claude-sonnet-4-5", KeyFile: "/run/secrets/key",
//	})
//	if err != nil {
//		return err
//	}
//	message, err := model.Call(ctx, messages, nil)
package llm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/bus/agent/render"
	"github.com/hookfabric/hookfabric/bus/chown"
)

// Options says which model to call, and how.
type Options struct {
	// Format is the format of the API; required.
	Format render.Format
	// URL is the address of the API, such as https://api.openai.com, with or without its
	// version; empty: the vendor's. It must use https, or http on this machine.
	URL string
	// Model is the model's name; required.
	Model string
	// KeyFile is a file with the API key; empty: use Key. The client reads it before each
	// attempt, so that the key can be replaced.
	KeyFile string
	// Key returns the API key before each attempt; nil: use KeyFile. If both are empty, the
	// client sends no key.
	Key func(ctx context.Context) (string, error)
	// MaxTokens limits an answer; 0: 8192 for the Messages API, which requires a limit, and the
	// API's default elsewhere.
	MaxTokens int
	// Timeout limits one attempt; 0: 10 minutes.
	Timeout time.Duration
	// Retries limits how often the client repeats a call after a temporary error; 0: 4;
	// negative: never.
	Retries int
	// HTTP makes the requests; nil: a client of its own. It does not follow redirects.
	HTTP *http.Client
}

const (
	defaultTokens  = 8192
	defaultTimeout = 10 * time.Minute
	defaultRetries = 4
	// maxAnswer limits an answer, and maxKey a key, in bytes.
	maxAnswer = 64 << 20
	maxKey    = 16 << 10
)

// A Client calls one model. Several goroutines may use it. Use [New].
type Client struct {
	opt  Options
	at   string
	http http.Client
}

// New returns a client. It does not contact the API or read the key yet.
func New(opt Options) (*Client, error) {
	if _, err := render.ParseFormat(string(opt.Format)); err != nil {
		return nil, err
	}
	if opt.Model == "" {
		return nil, errors.New("the model has no name; write the one that the API knows")
	}
	if opt.Key != nil && opt.KeyFile != "" {
		return nil, errors.New("there are KeyFile and Key; write one of them")
	}
	at, err := address(&opt)
	if err != nil {
		return nil, err
	}
	if opt.Timeout <= 0 {
		opt.Timeout = defaultTimeout
	}
	opt.Retries = cmp.Or(opt.Retries, defaultRetries)
	c := &Client{opt: opt, at: at}
	if opt.HTTP != nil {
		c.http = *opt.HTTP
	}
	// With redirects, headers with keys would be sent to other hosts.
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c, nil
}

// address returns the URL of requests.
func address(opt *Options) (string, error) {
	base := opt.URL
	if base == "" {
		base = vendor(opt.Format)
	}
	u, err := url.Parse(base)
	if err != nil || u.Host == "" {
		return "", errors.New("the model's URL cannot be read; write one such as https://api.example.com") // the URL may contain a secret
	}
	switch {
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "", fmt.Errorf("the model's URL at %s has a password, a query or a fragment; write the key into a file, and name that", u.Host)
	case u.Scheme == "http" && !loopback(u.Hostname()):
		return "", fmt.Errorf("the model at %s has a plain HTTP URL; conversations and keys need TLS to other machines: write https", u.Host)
	case u.Scheme != "http" && u.Scheme != "https":
		return "", fmt.Errorf("the model's URL begins with %.20q; write https", u.Scheme)
	}
	version, below := pathOf(opt.Format, opt.Model)
	u.Path = strings.TrimSuffix(strings.TrimRight(u.Path, "/"), version)
	u.RawPath = ""
	return u.String() + version + below, nil
}

// pathOf returns the API's version, which users may or may not include in the address,
// and the path after it.
func pathOf(f render.Format, model string) (version, below string) {
	switch f {
	case render.Anthropic:
		return "/v1", "/messages"
	case render.Gemini:
		return "/v1beta", "/models/" + url.PathEscape(strings.TrimPrefix(model, "models/")) + ":generateContent"
	}
	return "/v1", "/chat/completions"
}

func vendor(f render.Format) string {
	switch f {
	case render.Anthropic:
		return "https://api.anthropic.com"
	case render.Gemini:
		return "https://generativelanguage.googleapis.com"
	case render.Grok:
		return "https://api.x.ai"
	}
	return "https://api.openai.com"
}

// loopback reports whether a host is this machine.
func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.IsLoopback()
}

// key returns the API key; empty: none is configured.
func (c *Client) key(ctx context.Context) (string, error) {
	var key string
	switch {
	case c.opt.Key != nil:
		var err error
		if key, err = c.opt.Key(ctx); err != nil {
			return "", fmt.Errorf("the model's key: %w", err)
		}
	case c.opt.KeyFile != "":
		data, err := os.ReadFile(c.opt.KeyFile)
		if err = cmp.Or(err, chown.Private(c.opt.KeyFile)); err != nil {
			return "", fmt.Errorf("the model's key: %w", err)
		}
		key = string(data)
	}
	key = strings.TrimSpace(key)
	if strings.ContainsAny(key, "\r\n\x00") || len(key) > maxKey {
		return "", errors.New("the model's key is not a single line; write the key alone into its file")
	}
	if key == "" && (c.opt.Key != nil || c.opt.KeyFile != "") {
		return "", errors.New("the model's key is empty; write the key into its file")
	}
	return key, nil
}

// authorize adds the key in the header that the API expects.
func (c *Client) authorize(h http.Header, key string) {
	h.Set("Content-Type", "application/json")
	h.Set("User-Agent", "hookfabric")
	if c.opt.Format == render.Anthropic {
		h.Set("Anthropic-Version", "2023-06-01")
	}
	if key == "" {
		return
	}
	switch c.opt.Format {
	case render.Anthropic:
		h.Set("X-Api-Key", key)
	case render.Gemini:
		h.Set("X-Goog-Api-Key", key)
	default:
		h.Set("Authorization", "Bearer "+key)
	}
}
