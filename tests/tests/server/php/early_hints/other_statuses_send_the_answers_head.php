<?php
header('X-Sent: 1');
headers_send(202);
echo headers_sent() ? 'sent' : 'not sent';
try {
    headers_send(99);
} catch (ValueError $e) {
    echo ' refused';
}
