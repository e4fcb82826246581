package roles

import (
	"context"
	"strconv"

	"github.com/hookfabric/hookfabric/loadtest/proc"
	"github.com/hookfabric/hookfabric/schema"
)

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
		if err := schema.Unmarshal(said, &r); err != nil {
			return nil, err
		}
		return folded(r.Worker, r.Outcomes), nil
	})
}

// startStageTwo starts the second stage: a worker that runs a batch of hooks.
func startStageTwo(_ context.Context, _ struct{}) (*proc.Role, error) {
	return serving(func(_ context.Context, hooks int, event []byte) (any, error) {
		var e schema.Event
		if err := schema.Unmarshal(event, &e); err != nil {
			return nil, err
		}
		return schema.BatchReply{Worker: StageTwo, Outcomes: allowed(hooks)}, nil
	})
}
