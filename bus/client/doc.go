// Package client asks the fabric to judge events.
//
// [Client.Ask] returns either a verdict or an error before its context ends. An error means
// that the fabric did not judge the event, and the caller's own policy decides. If an
// aggregator dies during a call, the client asks once more under the same event id, so that
// hooks which must not run twice do not.
//
// # Concurrency
//
// Several goroutines may use a [Client], and should share one. Many calls over a few
// connections cost far less than one connection per call.
//
// # Usage
//
//	c, err := client.Connect(ctx, client.Options{URL: "nats://127.0.0.1:4222"})
//	if err != nil {
//		return err
//	}
//	defer c.Close()
//	v, err := c.Ask(ctx, &schema.Event{
//		HookType: schema.PreToolUse, AgentID: "agent1", ToolName: "Bash", ToolInput: input,
//	})
//	if err != nil || v.Decision == schema.Deny {
//		return errors.New("the tool must not run")
//	}
//
// # Delivery
//
// A verdict may deliver items that waited for its agent. It is complete when Ask returns: the
// client removes items that it delivered before, fetches long texts, and unpacks other agents'
// workspaces. When the agent has read the items, acknowledge them:
//
//	v, err := c.Ask(ctx, event)
//	…                     // the agent reads v.Injections
//	c.Handed(v.EventID)   // not before
//
// The fabric delivers unacknowledged items again after 30 s. [Client.Hold] renews that time. A
// long-lived process calls [Client.Flush] before [Client.Close]. A process that handles one
// event calls [Client.Ack] instead. If that fails, it stores the results of [Client.Brought]
// and [Client.Noted], and the next process passes them to [Client.Recall].
//
// # Conversations
//
// The option [History] supplies an agent's conversation. The client sends it only with events
// at which a hook needs it. It stores a long conversation in parts, and sends each part once.
package client
