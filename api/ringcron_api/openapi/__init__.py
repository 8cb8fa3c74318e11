"""The OpenAPI 3.1 document, assembled from the table of operations and the pydantic models, and a page made from it.

document         operations and models → the document
problem_schemas  the table of problems → schemas
texts            what the document says in prose, the guarantees among it
examples         bodies and answers that are shown
page, markdown   the document → HTML, without scripts and without the network
"""

from ringcron_api.openapi.document import make_document
from ringcron_api.openapi.page import Page, make_page

__all__ = ["Page", "make_document", "make_page"]
