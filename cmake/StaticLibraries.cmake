# Links gRPC, Protobuf and Abseil from their archives instead of their shared objects: a few MB and
# milliseconds less in every process, since only what is called is mapped and relocated. The
# distribution's CMake targets name the shared objects; the archives lie beside them. Needs lld (or
# another linker that does not care about the order of archives).
function(ascend_prefer_archives)
  foreach(target ${ARGN})
    get_target_property(kind ${target} TYPE)
    if(NOT kind STREQUAL "SHARED_LIBRARY")
      continue()
    endif()
    get_target_property(shared ${target} IMPORTED_LOCATION_NONE)
    string(REGEX REPLACE "\\.so[.0-9]*$" ".a" archive "${shared}")
    if(NOT EXISTS "${archive}")
      message(FATAL_ERROR "${archive} is missing; configure without ASCEND_DRA_STATIC_LIBRARIES")
    endif()
    set_target_properties(${target} PROPERTIES
      IMPORTED_LOCATION_NONE "${archive}" IMPORTED_SONAME_NONE "" IMPORTED_NO_SONAME_NONE ON)
  endforeach()
endfunction()

get_property(imported DIRECTORY PROPERTY IMPORTED_TARGETS)
list(FILTER imported INCLUDE REGEX "^(absl::.*|gRPC::(grpc\\+\\+_unsecure|grpc_unsecure|gpr|upb|address_sorting))$")
ascend_prefer_archives(${imported})
