package aggregator

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/micro"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/schema"
)

// reserved are verbs of the contract that this release does not serve.
var reserved = []string{"inject", "answer", "round", "ack", "drain", "fetch", "mode", "checkpoint", "config", "hooks"}

// control registers the aggregator with the NATS micro framework, as its face
// to `nats micro`, and serves the control verbs.
func (a *Aggregator) control() error {
	svc, err := micro.AddService(a.opt.Work, micro.Config{
		Name: "hookfabric-aggregator", Version: schema.Release,
		Description: "Answers agents' hook events",
		Metadata:    map[string]string{"fabric": a.opt.Fabric},
		ErrorHandler: func(_ micro.Service, e *micro.NATSError) {
			a.opt.Logger.Warn("control service failed", "subject", e.Subject, "error", e.Description)
		},
	})
	if err != nil {
		return fmt.Errorf("registering the control service: %w", err)
	}
	a.service = svc
	err = svc.AddEndpoint("control", micro.HandlerFunc(a.serve),
		micro.WithEndpointSubject(bus.ControlWildcard), micro.WithEndpointQueueGroup(bus.QueueAggregators))
	if err != nil {
		return fmt.Errorf("serving control requests: %w", err)
	}
	return nil
}

// serve answers one control request, before it returns: micro demands it.
func (a *Aggregator) serve(r micro.Request) {
	answer, err := a.verb(r)
	var data []byte
	if err == nil {
		data, err = schema.Marshal(answer)
	}
	if err == nil {
		err = r.Respond(data)
	} else {
		err = respondError(r, err)
	}
	if err != nil {
		a.opt.Logger.Warn("control request could not be answered", "subject", r.Subject(), "error", err)
	}
}

func (a *Aggregator) verb(r micro.Request) (any, error) {
	verb, _, err := bus.ParseControlSubject(r.Subject())
	switch {
	case err != nil:
		return nil, &schema.ControlError{Code: schema.CodeBadRequest, Message: err.Error()}
	case verb == "status":
		return a.Status(), nil
	case slices.Contains(reserved, verb):
		return nil, &schema.ControlError{Code: schema.CodeUnavailable, Message: fmt.Sprintf("this release does not serve %q yet", verb)}
	}
	return nil, &schema.ControlError{Code: schema.CodeBadRequest, Message: fmt.Sprintf(
		"unknown control verb %q; write status, or one of the reserved %s", verb, strings.Join(reserved, ", "))}
}

func respondError(r micro.Request, err error) error {
	ce, ok := errors.AsType[*schema.ControlError](err)
	if !ok {
		ce = &schema.ControlError{Code: schema.CodeInternal, Message: err.Error()}
	}
	data, err := schema.Marshal(ce)
	if err != nil {
		return fmt.Errorf("encoding the error: %w", err)
	}
	return r.Error(ce.Code, ce.Message, data)
}

// Status tells how this aggregator sees the fabric.
func (a *Aggregator) Status() schema.FabricStatus {
	s := schema.FabricStatus{
		Fabric: a.opt.Fabric, Version: schema.Release, ConfigVersion: a.Version(),
		InFlight: int(a.crew.busy.Load() + a.again.busy.Load()), Pools: a.members.Pools(), LoadErrors: a.members.LoadErrors(),
	}
	if local := a.opt.Local; local != nil {
		beat := local.Beat(schema.DefaultPool)
		maps.Copy(s.LoadErrors, beat.LoadErrors)
		p := pool(&s, schema.DefaultPool)
		p.Workers = append(p.Workers, schema.WorkerStatus{
			Worker: beat.Worker, InFlight: beat.InFlight, Capacity: beat.Capacity,
			Draining: beat.Draining, Versions: beat.Versions,
		})
	}
	if act := a.active.Load(); act != nil {
		s.Ready, s.Hooks = true, len(act.Config.Hooks)
		for i := range act.Config.Hooks {
			pool(&s, act.Config.Hooks[i].Pool)
		}
	}
	return s
}

// pool finds a pool in s, or adds it without workers.
func pool(s *schema.FabricStatus, name string) *schema.PoolStatus {
	i, found := slices.BinarySearchFunc(s.Pools, name, func(p schema.PoolStatus, name string) int {
		return strings.Compare(p.Pool, name)
	})
	if !found {
		s.Pools = slices.Insert(s.Pools, i, schema.PoolStatus{Pool: name, Workers: []schema.WorkerStatus{}})
	}
	return &s.Pools[i]
}
