// Package objects keeps content that is too large for messages.
package objects
