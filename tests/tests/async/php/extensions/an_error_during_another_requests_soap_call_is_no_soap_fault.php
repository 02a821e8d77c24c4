<?php
if (!class_exists('Quiet', false)) {
    class Quiet extends SoapClient {
        public function __doRequest($request, $location, $action, $version, $oneWay = false, $parser = null): ?string {
            meet('sent');
            meet('failed');
            return '';
        }
    }
}
if ($odd) {
    $client = new Quiet(null, ['location' => 'http://localhost/', 'uri' => 'urn:own']);
    $client->f();
    echo $m;
} else {
    meet('sent');
    try {
        (function () {
            not_there();
        })();
    } catch (Error $e) {
        echo $e->getMessage() === 'Call to undefined function not_there()' ? $m : $e;
    }
    echo is_soap_fault($m) || use_soap_error_handler(false) ? ' handles' : '';
    meet('failed');
}
