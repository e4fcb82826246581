package probe

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// A CodexHook is a hook as Codex reports it. Codex silently skips a hook that it does not trust.
type CodexHook struct {
	Key         string `json:"key"`
	Event       string `json:"eventName"`
	Command     string `json:"command"`
	Source      string `json:"sourcePath"`
	Enabled     bool   `json:"enabled"`
	CurrentHash string `json:"currentHash"`
	// TrustStatus is trusted, untrusted, modified or managed.
	TrustStatus string `json:"trustStatus"`
}

// Runs reports whether Codex runs the hook.
func (h *CodexHook) Runs() bool {
	return h.Enabled && (h.TrustStatus == "trusted" || h.TrustStatus == "managed")
}

const (
	codexTime  = 30 * time.Second // limits the time that Codex may take for all requests
	maxMessage = 8 << 20          // limits one message of Codex
)

// CodexHooks returns the hooks that Codex has for a folder.
func CodexHooks(ctx context.Context, dir string) (all []CodexHook, err error) {
	err = withCodex(ctx, func(c *codex) error {
		all, err = c.hooks(dir)
		return err
	})
	return all, err
}

// TrustCodex has Codex trust the chosen hooks of a folder, or stop trusting them, and counts the changes.
func TrustCodex(ctx context.Context, dir string, trust bool, chosen func(*CodexHook) bool) (n int, err error) {
	err = withCodex(ctx, func(c *codex) error {
		all, err := c.hooks(dir)
		if err != nil {
			return err
		}
		var edits []codexEdit
		for i := range all {
			h := &all[i]
			if !chosen(h) || h.Runs() == trust {
				continue
			}
			e := codexEdit{Path: "hooks.state." + keyPath(h.Key), Value: jsontext.Value("null"), Strategy: "replace"}
			if trust {
				v, err := schema.Marshal(map[string]string{"trusted_hash": h.CurrentHash})
				if err != nil {
					return err
				}
				e.Value, e.Strategy = v, "upsert"
			}
			edits = append(edits, e)
		}
		if n = len(edits); n == 0 {
			return nil
		}
		return c.call("config/batchWrite", map[string]any{"edits": edits}, nil)
	})
	return n, err
}

type codexEdit struct {
	Path     string         `json:"keyPath"`
	Value    jsontext.Value `json:"value"`
	Strategy string         `json:"mergeStrategy"`
}

// keyPath quotes a key as TOML does, so that a dot in it does not separate keys.
func keyPath(key string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
}

// A codex is `codex app-server`, which speaks JSON-RPC on its stdin and stdout.
type codex struct {
	in   io.Writer
	out  *bufio.Scanner
	last int
}

// withCodex starts Codex, calls ask, and ends Codex.
func withCodex(ctx context.Context, ask func(*codex) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, codexTime, fmt.Errorf("codex did not answer within %s", codexTime))
	defer cancel()
	cmd := exec.CommandContext(ctx, "codex", "app-server")
	alone(cmd)
	cmd.WaitDelay = grace
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting codex: %w", err)
	}
	c := &codex{in: in, out: bufio.NewScanner(out)}
	c.out.Buffer(nil, maxMessage)
	if err = c.hello(); err == nil {
		err = ask(c)
	}
	_ = in.Close()
	cancelled := context.Cause(ctx)
	cancel() // it may continue without stdin, and its output is no longer needed
	_ = cmd.Wait()
	sweep(cmd)
	if err != nil && cancelled != nil {
		return cancelled
	}
	return err
}

func (c *codex) hello() error {
	who := map[string]string{"name": "agentshim", "title": "agentshim", "version": schema.Release}
	if err := c.call("initialize", map[string]any{"clientInfo": who}, nil); err != nil {
		return err
	}
	return c.send(map[string]any{"method": "initialized"})
}

// hooks lists the hooks for a folder.
func (c *codex) hooks(dir string) ([]CodexHook, error) {
	var answer struct {
		Data []struct {
			Hooks  []CodexHook `json:"hooks"`
			Errors []struct {
				Path    string `json:"path"`
				Message string `json:"message"`
			} `json:"errors"`
		} `json:"data"`
	}
	if err := c.call("hooks/list", map[string]any{"cwds": []string{dir}}, &answer); err != nil {
		return nil, err
	}
	var all []CodexHook
	for _, d := range answer.Data {
		all = append(all, d.Hooks...)
		for _, e := range d.Errors { // the list is empty then, which does not mean that there are no hooks
			return nil, fmt.Errorf("codex could not read its configuration for %s: %s", e.Path, e.Message)
		}
	}
	return all, nil
}

func (c *codex) send(v any) error {
	b, err := schema.Marshal(v)
	if err == nil {
		_, err = c.in.Write(append(b, '\n'))
	}
	return err
}

// call sends one request, and reads until its answer arrives.
func (c *codex) call(method string, params, into any) error {
	c.last++
	if err := c.send(map[string]any{"id": c.last, "method": method, "params": params}); err != nil {
		return fmt.Errorf("codex app-server: %s: %w", method, err)
	}
	for c.out.Scan() {
		var m struct {
			ID     jsontext.Value `json:"id"`
			Result jsontext.Value `json:"result"`
			Error  *struct {
				Message string `json:"message"`
			} `json:"error"`
		}
		if schema.Unmarshal(c.out.Bytes(), &m) != nil || string(m.ID) != fmt.Sprint(c.last) {
			continue
		}
		if m.Error != nil {
			return fmt.Errorf("codex app-server: %s: %s", method, m.Error.Message)
		}
		if into == nil {
			return nil
		}
		return schema.Unmarshal(m.Result, into)
	}
	if err := c.out.Err(); err != nil {
		return fmt.Errorf("codex app-server: %s: %w", method, err)
	}
	return errors.New("codex app-server ended before it answered; is this version of Codex too old for it?")
}
