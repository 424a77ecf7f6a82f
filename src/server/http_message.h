// A request and a response as handlers see them, free of Beast's types.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace sluice::server {

struct HttpRequest {
  std::string id;            // x-request-id: the client's if it is a fit one, else ours
  std::string method;        // "POST"
  std::string path;          // percent-decoded, without the query
  std::string tail;          // what the "*" of the route stands for
  std::string content_type;  // as sent; may be empty
  std::string body;
};

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpResponse {
  int status = 200;
  std::string body;
  std::string content_type = "application/json";
  HttpHeaders headers = {};
};

}  // namespace sluice::server
