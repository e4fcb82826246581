package workers_test

import (
	"context"
	"fmt"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
)

// How do I write a hook in Go?
//
// The hooks.yaml of the fabric names the handler as a builtin of the pool:
//
//	hooks:
//	  PreToolUse:
//	    - {type: builtin, handler: limit, matcher: transfer, pool: payments, fail_closed: true}
func Example_howDoIWriteAHook() {
	ctx, url, stop := startBroker(`
hooks:
  PreToolUse:
    - {type: builtin, handler: limit, matcher: transfer, pool: payments, fail_closed: true}
`)
	defer stop()

	limit := workers.HandlerFunc(func(_ context.Context, e *schema.Event) (schema.Result, error) {
		var input struct {
			Amount float64 `json:"amount"`
		}
		if err := schema.Unmarshal(e.ToolInput, &input); err != nil {
			return schema.Result{}, err // no answer: the failure policy decides
		}
		if input.Amount > 100 {
			return schema.Denied("the limit is 100"), nil
		}
		return schema.Result{}, nil // no opinion
	})

	nc, err := bus.Connect(ctx, bus.Options{URL: url, Name: workers.ConnectionPrefix + "payments-1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer nc.Close()
	serving, end := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { served <- workers.Serve(serving, nc, "payments", map[string]workers.Handler{"limit": limit}) }()

	fmt.Println(askAboutTransfer(ctx, url, 20))
	fmt.Println(askAboutTransfer(ctx, url, 2000))
	end()
	if err := <-served; err != nil {
		fmt.Println(err)
	}
	// Output:
	// continue
	// deny: the limit is 100
}
