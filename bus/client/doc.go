// Package client asks the fabric. A [Client] is safe for many goroutines and
// meant to be shared: many callers on few connections are far cheaper than a
// connection each.
//
// [Client.Ask] returns a verdict or an error, never both and never neither,
// before its context ends. An error means that nobody judged: what then is
// the caller's own policy. A call whose aggregator dies is asked once more,
// under the same event id, so that nothing that must not run twice does.
package client
