-- On a standby: from the next reload on it receives nothing more, as if the network to its primary were cut.
alter system set primary_conninfo = ''
