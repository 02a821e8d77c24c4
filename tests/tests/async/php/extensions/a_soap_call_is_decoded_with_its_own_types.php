<?php
if (!class_exists('Waiting', false)) {
    class Waiting extends SoapClient {
        public function __doRequest($request, $location, $action, $version, $oneWay = false, $parser = null): ?string {
            meet('sent');
            $m = $_GET['m'];
            @trigger_error("in $m");
            return "<E:Envelope xmlns:E='http://schemas.xmlsoap.org/soap/envelope/' xmlns:i='http://www.w3.org/2001/XMLSchema-instance' xmlns:o='urn:own'><E:Body><o:fResponse><return i:type='o:t'>$m</return></o:fResponse></E:Body></E:Envelope>";
        }
    }
}
$client = new Waiting(null, ['location' => 'http://localhost/', 'uri' => 'urn:own', 'typemap' => [['type_ns' => 'urn:own', 'type_name' => 't',
    'from_xml' => function ($xml) use ($m) {
    usleep(random_int(1, 300));
    return "$m: " . strip_tags($xml);
}]]]);
meet('a');
echo $client->f();
