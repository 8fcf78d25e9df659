# Planned only: no stand-in has the requests of this Git host.
