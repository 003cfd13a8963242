#include "kubeletplugin/kube/request_report.h"

#include "gtest/gtest.h"

namespace ascend::kube {
namespace {

TEST(RequestReportTest, EveryRequestOfTheDriverHasAName) {
  const struct {
    const char* method;
    const char* target;
    RequestKind kind;
  } cases[] = {
      {"GET",
       "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/job-1",
       {Verb::kGet, Resource::kResourceClaims}},
      {"PATCH",
       "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/job-1/status?fieldManager=x",
       {Verb::kPatch, Resource::kResourceClaimsStatus}},
      {"GET", "/api/v1/nodes/n1", {Verb::kGet, Resource::kNodes}},
      {"GET",
       "/apis/resource.k8s.io/v1/resourceslices?fieldSelector=spec.driver%3Dx",
       {Verb::kList, Resource::kResourceSlices}},
      {"GET",
       "/apis/resource.k8s.io/v1/resourceslices?watch=true&allowWatchBookmarks=true",
       {Verb::kWatch, Resource::kResourceSlices}},
      {"POST",
       "/apis/resource.k8s.io/v1/resourceslices",
       {Verb::kCreate, Resource::kResourceSlices}},
      {"PUT",
       "/apis/resource.k8s.io/v1/resourceslices/s",
       {Verb::kUpdate, Resource::kResourceSlices}},
      {"DELETE",
       "/apis/resource.k8s.io/v1/resourceslices/s",
       {Verb::kDelete, Resource::kResourceSlices}},
      {"POST",
       "/apis/events.k8s.io/v1/namespaces/default/events",
       {Verb::kCreate, Resource::kEvents}},
      // A namespace of that name is no resource.
      {"GET",
       "/apis/resource.k8s.io/v1/namespaces/nodes/resourceclaims/events",
       {Verb::kGet, Resource::kResourceClaims}},
  };
  for (const auto& c : cases) {
    const RequestKind kind = KindOfRequest(c.method, c.target);
    EXPECT_STREQ(Name(kind.verb), Name(c.kind.verb)) << c.target;
    EXPECT_STREQ(Name(kind.resource), Name(c.kind.resource)) << c.target;
  }
}

TEST(RequestReportTest, WhatIsUnknownIsOther) {
  for (const char* target : {"", "/", "?", "/api", "/version", "/apis/resource.k8s.io/v1",
                             "/api/v1/pods/p", "/api/v1/nodes/n1/status",
                             "/apis/resource.k8s.io/v1/namespaces/x/resourceclaims/y/driver"}) {
    EXPECT_STREQ(Name(KindOfRequest("GET", target).resource), "other") << target;
  }
}

}  // namespace
}  // namespace ascend::kube
