// Package llm calls language models over HTTP: a conversation goes out, the
// model's message comes back, whatever API it speaks. It is for loops that have no
// SDK of their own; answers come whole, not as streams.
//
// What fails for a reason that passes is tried again, as often and as long as the
// caller allows. The key goes nowhere but into a header, over TLS or to this machine.
package llm

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/bus/client/render"
)

// Options say which model is called, and how.
type Options struct {
	// Format is the API's; it must be there.
	Format render.Format
	// URL is where the API is, such as https://api.openai.com, with or without the
	// version behind it; empty: the vendor's. It is https, or http on this machine.
	URL string
	// Model is the model's name; it must be there.
	Model string
	// KeyFile is a file with the API's key; empty: Key. It is read before each
	// attempt, so that a key may be replaced.
	KeyFile string
	// Key is asked for the key before each attempt; nil: KeyFile, and if that is
	// empty, too, no key is sent.
	Key func(ctx context.Context) (string, error)
	// MaxTokens bounds an answer; 0 is 8192 for the Messages API, which demands a
	// bound, and the API's own elsewhere.
	MaxTokens int
	// Timeout bounds one attempt; 0 is 10 minutes.
	Timeout time.Duration
	// Retries is how often a call is made again that failed for a reason that
	// passes; 0 is 4, below 0 never.
	Retries int
	// HTTP makes the requests; nil: one of its own. Redirects are not followed.
	HTTP *http.Client
}

const (
	defaultTokens  = 8192
	defaultTimeout = 10 * time.Minute
	defaultRetries = 4
	// maxAnswer bounds an answer, in bytes, and maxKey a key.
	maxAnswer = 64 << 20
	maxKey    = 16 << 10
)

// A Client calls one model. It serves many goroutines. It is made by [New].
type Client struct {
	opt  Options
	at   string
	http http.Client
}

// New makes a client. It does not ask the API anything yet, and reads no key.
func New(opt Options) (*Client, error) {
	if _, err := render.ParseFormat(string(opt.Format)); err != nil {
		return nil, err
	}
	if opt.Model == "" {
		return nil, errors.New("the model has no name; write the one that the API knows")
	}
	if opt.Key != nil && opt.KeyFile != "" {
		return nil, errors.New("the key comes from a file and from a function; write one of them")
	}
	at, err := address(&opt)
	if err != nil {
		return nil, err
	}
	if opt.Timeout <= 0 {
		opt.Timeout = defaultTimeout
	}
	if opt.Retries == 0 {
		opt.Retries = defaultRetries
	}
	c := &Client{opt: opt, at: at}
	if opt.HTTP != nil {
		c.http = *opt.HTTP
	}
	// Headers with keys would go along to wherever an answer points.
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c, nil
}

// address is where requests go.
func address(opt *Options) (string, error) {
	base := opt.URL
	if base == "" {
		base = vendor(opt.Format)
	}
	u, err := url.Parse(base)
	if err != nil || u.Host == "" {
		return "", errors.New("the model's URL can not be read; write one such as https://api.example.com") // it may hold a secret
	}
	switch {
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "", fmt.Errorf("the model's URL at %s has a password, a query or a fragment; write the key into a file, and name that", u.Host)
	case u.Scheme == "http" && !loopback(u.Hostname()):
		return "", fmt.Errorf("the model at %s is to be reached over plain HTTP; conversations and keys go over TLS to other machines: write https", u.Host)
	case u.Scheme != "http" && u.Scheme != "https":
		return "", fmt.Errorf("the model's URL begins with %.20q; write https", u.Scheme)
	}
	version, below := pathOf(opt.Format, opt.Model)
	u.Path = strings.TrimSuffix(strings.TrimRight(u.Path, "/"), version)
	u.RawPath = ""
	return u.String() + version + below, nil
}

// pathOf is an API's version, which people write behind its address or not, and
// what comes after it.
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

// key is the API's key; empty: there is none.
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
		if err != nil {
			return "", fmt.Errorf("the model's key: %w", err)
		}
		key = string(data)
	}
	key = strings.TrimSpace(key)
	if strings.ContainsAny(key, "\r\n\x00") || len(key) > maxKey {
		return "", errors.New("the model's key is no single line of a header; write the key alone into its file")
	}
	if key == "" && (c.opt.Key != nil || c.opt.KeyFile != "") {
		return "", errors.New("the model's key is empty; write the key into its file")
	}
	return key, nil
}

// authorized has the key where the API wants it.
func (c *Client) authorized(h http.Header, key string) {
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
