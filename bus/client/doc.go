// Package client asks the fabric. A [Client] is safe for many goroutines and
// meant to be shared: many callers on few connections are far cheaper than a
// connection each.
//
// [Client.Ask] returns a verdict or an error, never both and never neither,
// before its context ends. An error means that nobody judged: what then is
// the caller's own policy. A call whose aggregator dies is asked once more,
// under the same event id, so that nothing that must not run twice does.
//
// The option [History] has an agent's conversation at hand. It goes along only with
// events at which some hook needs it, a long one in parts that are stored once.
//
// A verdict may bring what waited for its agent. It is complete when Ask
// returns: what was handed over before is cut, large texts are fetched, and
// workspaces of other agents unpacked. When the agent has it, say so:
//
//	v, err := c.Ask(ctx, event)
//	…                     // the agent reads v.Injections
//	c.Handed(v.EventID)   // and not before
//
// What nobody says that of comes again after 30 s; [Client.Hold] renews that
// time. Processes that live for one event acknowledge at once by [Client.Ack],
// keep what [Client.Brought] and [Client.Noted] say where that fails, and tell
// the next process by [Client.Recall]. Who lives longer calls [Client.Flush]
// before [Client.Close].
package client
