"""What goes over the wire: a request in neutral form, and pure functions that turn it into what a provider takes."""
