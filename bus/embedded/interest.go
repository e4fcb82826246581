package embedded

// Interest reports whether anybody listens on subject, so that what nobody
// hears need not be said.
func (s *Server) Interest(subject string) bool {
	return s.nats.GlobalAccount().SubscriptionInterest(subject)
}
