package roles

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strconv"

	"github.com/hookfabric/hookfabric/loadtest/internal/proc"
	"github.com/hookfabric/hookfabric/schema"
)

// An answerer answers an event, given the number of hooks in the path.
type answerer func(ctx context.Context, hooks int, event []byte) (any, error)

// startWebhook serves hooks over HTTP, as without a fabric. It decodes the event, runs the
// number of hooks that the path names, and encodes the verdict.
func startWebhook(_ context.Context, _ struct{}) (*proc.Role, error) {
	return serving(func(_ context.Context, hooks int, event []byte) (any, error) {
		var e schema.Event
		err := schema.Unmarshal(event, &e)
		return folded(Webhook, allowed(hooks)), err
	})
}

// startStageOne starts the fabric's first stage over HTTP. It forwards the event unchanged
// to the worker at at.URL, and folds the outcomes into a verdict. Like the aggregator it
// does not decode the event.
func startStageOne(_ context.Context, at Address) (*proc.Role, error) {
	c := keepAlive()
	return serving(func(ctx context.Context, hooks int, event []byte) (any, error) {
		said, err := post(ctx, c, at.URL+"/"+strconv.Itoa(hooks), event)
		if err != nil {
			return nil, err
		}
		var r schema.BatchReply
		err = schema.Unmarshal(said, &r)
		return folded(r.Worker, r.Outcomes), err
	})
}

// startStageTwo starts the second stage: a worker that runs a batch of hooks.
func startStageTwo(_ context.Context, _ struct{}) (*proc.Role, error) {
	return serving(func(_ context.Context, hooks int, event []byte) (any, error) {
		var e schema.Event
		err := schema.Unmarshal(event, &e)
		return schema.BatchReply{Worker: StageTwo, Outcomes: allowed(hooks)}, err
	})
}

// httpAsk sends events to a webhook, or to the first of two stages.
func httpAsk(c *http.Client, url string) ask {
	return func(ctx context.Context, e *schema.Event, hooks int) (*schema.Verdict, error) {
		body, err := schema.Marshal(e)
		if err != nil {
			return nil, fmt.Errorf("encoding an event: %w", err)
		}
		answer, err := post(ctx, c, url+"/"+strconv.Itoa(hooks), body)
		if err != nil {
			return nil, err
		}
		return verdict(answer)
	}
}

// keepAlive returns a client that keeps a connection for every caller: HTTP/1.1 answers one
// request at a time on each.
func keepAlive() *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConns: 256, MaxIdleConnsPerHost: 256, DisableCompression: true}}
}

func post(ctx context.Context, c *http.Client, url string, body []byte) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w", url, err)
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := c.Do(r)
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w", url, err)
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, fmt.Errorf("reading the answer of %s: %w", url, err)
	}
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answered %s: %s", url, answer.Status, said)
	}
	return said, nil
}

// serving returns a role that answers POST /<number of hooks> on a free port.
func serving(answer answerer) (*proc.Role, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("looking for a free port: %w", err)
	}
	s := &http.Server{Handler: answer}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	return &proc.Role{
		Facts: Address{URL: "http://" + l.Addr().String()},
		Do:    Settle,
		Close: func() error {
			err := s.Close()
			if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
				err = errors.Join(err, served)
			}
			return err
		},
	}, nil
}

// ServeHTTP answers a request with the answer's JSON.
func (a answerer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := a.judged(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body) // the caller notices an incomplete body
}

func (a answerer) judged(r *http.Request) ([]byte, error) {
	hooks, err := strconv.Atoi(r.URL.Path[1:])
	if err != nil {
		return nil, fmt.Errorf("the path %q is no number of hooks; ask for /1", r.URL.Path)
	}
	event, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, fmt.Errorf("reading the event: %w", err)
	}
	v, err := a(r.Context(), hooks, event)
	if err != nil {
		return nil, err
	}
	return schema.Marshal(v)
}

// commandAsk starts a program for every call, as runtimes do with command hooks. The
// program reads the event on its standard input. Exit code 0 without output means no
// opinion.
func commandAsk(program string) ask {
	return func(ctx context.Context, e *schema.Event, _ int) (*schema.Verdict, error) {
		body, err := schema.Marshal(e)
		if err != nil {
			return nil, fmt.Errorf("encoding an event: %w", err)
		}
		cmd := exec.CommandContext(ctx, program)
		cmd.Stdin = bytes.NewReader(body)
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("running %s: %w", program, err)
		}
		if len(out) == 0 {
			return &schema.Verdict{Decision: schema.Continue}, nil
		}
		return verdict(out)
	}
}
