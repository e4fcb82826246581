// Package app is the broker as a value. [New] connects an embedded or external NATS server,
// the configuration, a worker and an aggregator; [Main] is the command line around it.
// Programs that need a whole fabric in their own process, such as tests and the load test,
// use [New]:
//
//	b, err := app.New(ctx, app.Options{Config: "hooks.yaml", Data: dir})
//	if err != nil {
//		return err
//	}
//	defer b.Close(ctx)
//
// A [Broker] is safe for concurrent use.
package app
