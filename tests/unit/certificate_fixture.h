/* A certificate, for parsers: nobody has its key. */
#pragma once

static const char certificate_pem[] =
    "-----BEGIN CERTIFICATE-----\n"
    "MIIBdTCCARugAwIBAgIUBLmFXw1hfUfOgZeXKfItRfFn51gwCgYIKoZIzj0EAwIw\n"
    "DzENMAsGA1UEAwwEdGVzdDAgFw0yNjExMTYxNTMyNTJaGA8yMTI2MTAyMzE1MzI1\n"
    "MlowDzENMAsGA1UEAwwEdGVzdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABI8/\n"
    "vHZob2lKGmX/17OPG7CUIWQ2WdeJ1dt/NylNGcWkPy3byoo2lVjhVYFCzt8CAG3k\n"
    "RXopSpMvHABN5uFRuICjUzBRMB0GA1UdDgQWBBTnF/MIb/CmMpJn+UGCeg0nZEhZ\n"
    "xDAfBgNVHSMEGDAWgBTnF/MIb/CmMpJn+UGCeg0nZEhZxDAPBgNVHRMBAf8EBTAD\n"
    "AQH/MAoGCCqGSM49BAMCA0gAMEUCIBBAT9fw2yedoE4TpCBW/rmNLLcKzH4PWrMR\n"
    "MEzQHi9QAiEAnpVmn4UM5jN5r/m6ulMbo7K1d1wmIOxv59gNWnzbMkw=\n"
    "-----END CERTIFICATE-----\n";
