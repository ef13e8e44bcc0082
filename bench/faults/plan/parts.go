package plan

// Parts are what the handler of some tasks does once each, whatever becomes of its attempts.
func Parts(seed uint64, id string) []string {
	if topicOf(seed, id) != Plain || Draw(seed, id, "parts")%4 != 0 {
		return nil
	}
	return []string{"charge", "ship", "mail"}
}
