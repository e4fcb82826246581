// Package creds implements `broker creds`, which manages who may use a fabric. It changes
// the realm beside a broker's data (bus/server/realm), which a running broker follows.
package creds
